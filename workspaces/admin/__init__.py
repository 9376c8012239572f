"""Admin of people and workspaces. Staff need Django's permissions, and act by functions of ``workspaces.actions``."""

from workspaces.admin import accounts, content, language_models, workspaces

__all__ = ["accounts", "content", "language_models", "workspaces"]
