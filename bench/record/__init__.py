"""Reads and writes the record of a session on disk, which is the truth; writes files atomically."""
