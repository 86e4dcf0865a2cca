"""Data sets, each pinned by its SHA-256; nothing is downloaded while a run goes."""
