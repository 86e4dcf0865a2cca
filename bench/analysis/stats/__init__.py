"""Numbers alone: estimates, intervals, tests and laws, of arrays and of nothing that is ours."""
