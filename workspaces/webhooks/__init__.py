"""Webhooks: other programs are told what happens in a workspace, signed as Standard Webhooks says."""
