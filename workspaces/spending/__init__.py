"""Usage, cost and budgets of model calls."""
