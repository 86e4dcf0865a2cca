"""Reads options and writes output: text, progress, JSON, completion, help."""
