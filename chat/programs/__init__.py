"""Doors for programs that have a conversation of their own: what they speak, and nothing that others decide."""
