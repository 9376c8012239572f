"""People, the workspaces they share, and what each may do there."""

from workspaces.models.connection import (
    Connection,
    ConnectionQuerySet,
)
from workspaces.models.people import (
    Agent,
    AgentQuerySet,
    ApiKey,
    AuditEvent,
    AuditEventQuerySet,
    DoneRequest,
    KeyScope,
    Membership,
    Role,
    SignIn,
    Spent,
    User,
    Workspace,
    WorkspaceQuerySet,
)

__all__ = [
    "Agent",
    "AgentQuerySet",
    "ApiKey",
    "AuditEvent",
    "AuditEventQuerySet",
    "Connection",
    "ConnectionQuerySet",
    "DoneRequest",
    "KeyScope",
    "Membership",
    "Role",
    "SignIn",
    "Spent",
    "User",
    "Workspace",
    "WorkspaceQuerySet",
]
