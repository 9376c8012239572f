"""People, the workspaces they share, and what each may do there."""

from workspaces.models.api_key import ApiKey, KeyScope
from workspaces.models.artifact import Artifact, ArtifactKind, ArtifactVersion
from workspaces.models.audit_event import AuditEvent, AuditEventQuerySet
from workspaces.models.connection import (
    Connection,
    ConnectionQuerySet,
)
from workspaces.models.document import (
    Document,
    DocumentPassage,
    DocumentPicture,
    DocumentQuerySet,
    DocumentStatus,
    DocumentVersion,
)
from workspaces.models.embedding_model import EmbeddingModel, ModelState
from workspaces.models.group_grant import DirectoryGroup, GroupGrant
from workspaces.models.growth import CommonWord, PlaceStatistics, VectorIndex
from workspaces.models.invitation import Invitation
from workspaces.models.oauth import OAuthClient, OAuthCode, OAuthToken, TokenKind
from workspaces.models.owned import OwnedQuerySet
from workspaces.models.passage import PassageVector, PassageWord
from workspaces.models.people import (
    Agent,
    AgentQuerySet,
    DoneRequest,
    Membership,
    PersonPicture,
    Role,
    SignIn,
    Spent,
    User,
    Workspace,
    WorkspaceQuerySet,
)
from workspaces.models.retention import Retention
from workspaces.models.spending import Budget, ModelUse, Purpose
from workspaces.models.waiting_mail import WaitingMail
from workspaces.models.webhook import DeliveryStatus, Webhook, WebhookDelivery, WebhookEvent

__all__ = [
    "Agent",
    "AgentQuerySet",
    "ApiKey",
    "Artifact",
    "ArtifactKind",
    "ArtifactVersion",
    "AuditEvent",
    "AuditEventQuerySet",
    "Budget",
    "CommonWord",
    "Connection",
    "ConnectionQuerySet",
    "DeliveryStatus",
    "DirectoryGroup",
    "Document",
    "DocumentPassage",
    "DocumentPicture",
    "DocumentQuerySet",
    "DocumentStatus",
    "DocumentVersion",
    "DoneRequest",
    "EmbeddingModel",
    "GroupGrant",
    "Invitation",
    "KeyScope",
    "Membership",
    "ModelState",
    "ModelUse",
    "OAuthClient",
    "OAuthCode",
    "OAuthToken",
    "OwnedQuerySet",
    "PassageVector",
    "PassageWord",
    "PersonPicture",
    "PlaceStatistics",
    "Purpose",
    "Retention",
    "Role",
    "SignIn",
    "Spent",
    "TokenKind",
    "User",
    "VectorIndex",
    "WaitingMail",
    "Webhook",
    "WebhookDelivery",
    "WebhookEvent",
    "Workspace",
    "WorkspaceQuerySet",
]
