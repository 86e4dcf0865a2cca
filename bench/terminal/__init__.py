"""The command line's output: text, progress, JSON, completion."""
