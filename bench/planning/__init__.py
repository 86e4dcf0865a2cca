"""Turns a request into a plan of complete Specs, and checks it before anything starts."""
