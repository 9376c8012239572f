"""Webhooks: notify other programs of events in a workspace, signed according to Standard Webhooks."""
