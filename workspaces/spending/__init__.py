"""Costs of models: usage records of calls, monthly totals, and budgets that warn and stop."""
