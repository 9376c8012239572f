"""People and workspaces. Staff act by Django's permissions, within the rules of ``workspaces.actions.workspaces``."""

from workspaces.admin import (
    agents,
    artifacts,
    audit,
    connections,
    documents,
    embedding_models,
    groups,
    keys,
    people,
    single_sign_on,
    spending,
    two_factor,
    workspaces,
)

__all__ = [
    "agents",
    "artifacts",
    "audit",
    "connections",
    "documents",
    "embedding_models",
    "groups",
    "keys",
    "people",
    "single_sign_on",
    "spending",
    "two_factor",
    "workspaces",
]
