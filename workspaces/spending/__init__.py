"""Costs of models: the ledger of their calls, its totals, and budgets that warn and stop."""
