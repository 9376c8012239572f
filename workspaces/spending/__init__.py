"""Costs of models: the ledger of their calls, monthly totals, and budgets that warn and stop."""
