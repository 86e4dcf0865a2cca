"""Runs sessions: one run after another, the Jobs API, transfer of results, the quiet check, the lock."""
