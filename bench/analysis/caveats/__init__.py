"""Reasons not to believe a number: the rules, by what they look at."""
