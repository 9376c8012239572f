"""Webhooks: notify other programs of events in a workspace, signed as Standard Webhooks says."""
