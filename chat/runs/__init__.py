"""Runs: background work on an objective, in steps that share one memory."""
