"""Statistics on plain numbers: estimates, intervals, tests and scaling laws. Knows no value of raymeter's own."""
