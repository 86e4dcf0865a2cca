"""The face: one module a command. Flags in, text out; the work is elsewhere."""
