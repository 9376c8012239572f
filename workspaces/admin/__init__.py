"""Admin of people and workspaces. Staff need Django's permissions, and act by functions of ``workspaces.actions``."""

from workspaces.admin import accounts, content, models, workspaces

__all__ = ["accounts", "content", "models", "workspaces"]
