"""What models cost: the ledger of their calls, its totals, and budgets that warn and stop."""
