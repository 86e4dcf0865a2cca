"""What is to be run: params, plan files, budgets, and what must be there before anything starts."""
