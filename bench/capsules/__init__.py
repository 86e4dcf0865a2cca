"""A session in one file: packed, read with suspicion, checked number by number, and done again."""
