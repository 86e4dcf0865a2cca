"""The record of a session on disk, which is the truth, and atomic file writes."""
