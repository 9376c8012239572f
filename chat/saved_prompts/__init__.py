"""Prompts that people keep to send again, with variables to fill in: their own, and a workspace's."""
