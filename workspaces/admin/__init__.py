"""Admin of people and workspaces. Staff act by Django's permissions, within the rules of ``workspaces.actions``."""

from workspaces.admin import accounts, content, models, workspaces

__all__ = ["accounts", "content", "models", "workspaces"]
