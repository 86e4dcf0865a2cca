"""Runs sessions: one run after the other, through the Jobs API, with quiet check, lock and transfer of results."""
