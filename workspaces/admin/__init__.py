"""People and workspaces. Staff act by Django's permissions, within the rules of ``workspaces.actions.workspaces``."""

from workspaces.admin import accounts, audit, content, models, spending, workspaces

__all__ = ["accounts", "audit", "content", "models", "spending", "workspaces"]
