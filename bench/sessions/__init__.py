"""What is being run and what was: the session, its record on disk, and what earlier ones say."""
