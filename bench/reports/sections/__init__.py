"""The parts of a report, as tables and sentences that no format is known to."""
