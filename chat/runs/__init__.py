"""Runs: an objective worked on in steps that share one memory."""
