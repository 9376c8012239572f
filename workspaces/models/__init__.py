"""People, the workspaces they share, and what each may do there."""

from workspaces.models.artifact import Artifact, ArtifactKind, ArtifactQuerySet, ArtifactVersion
from workspaces.models.connection import (
    Connection,
    ConnectionQuerySet,
)
from workspaces.models.document import (
    Document,
    DocumentPassage,
    DocumentQuerySet,
    DocumentStatus,
    DocumentVersion,
)
from workspaces.models.embedding_model import EmbeddingModel, ModelState
from workspaces.models.growth import CommonWord, PlaceStatistics, VectorIndex
from workspaces.models.oauth import OAuthClient, OAuthCode, OAuthToken, TokenKind
from workspaces.models.passage import PassageVector, PassageWord
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
from workspaces.models.webhook import DeliveryStatus, Webhook, WebhookDelivery, WebhookEvent

__all__ = [
    "Agent",
    "AgentQuerySet",
    "ApiKey",
    "Artifact",
    "ArtifactKind",
    "ArtifactQuerySet",
    "ArtifactVersion",
    "AuditEvent",
    "AuditEventQuerySet",
    "CommonWord",
    "Connection",
    "ConnectionQuerySet",
    "DeliveryStatus",
    "Document",
    "DocumentPassage",
    "DocumentQuerySet",
    "DocumentStatus",
    "DocumentVersion",
    "DoneRequest",
    "EmbeddingModel",
    "KeyScope",
    "Membership",
    "ModelState",
    "OAuthClient",
    "OAuthCode",
    "OAuthToken",
    "PassageVector",
    "PassageWord",
    "PlaceStatistics",
    "Role",
    "SignIn",
    "Spent",
    "TokenKind",
    "User",
    "VectorIndex",
    "Webhook",
    "WebhookDelivery",
    "WebhookEvent",
    "Workspace",
    "WorkspaceQuerySet",
]
