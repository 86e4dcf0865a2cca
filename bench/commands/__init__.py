"""Implements the commands, one module each: options in, text out."""
