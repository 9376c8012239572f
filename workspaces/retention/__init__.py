"""Retention: owners' rules for a workspace, the operator's for all, and what is deleted by them."""
