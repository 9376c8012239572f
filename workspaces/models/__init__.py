"""Models of users, workspaces and their content."""

from workspaces.models.accounts import (
    ApiKey,
    DirectoryGroup,
    GroupGrant,
    Invitation,
    KeyScope,
    OAuthClient,
    OAuthCode,
    OAuthToken,
    TokenKind,
    WaitingMail,
)
from workspaces.models.audit_and_webhooks import (
    AuditEvent,
    AuditEventQuerySet,
    DeliveryStatus,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
from workspaces.models.connections import Budget, Connection, ConnectionQuerySet, ModelUse, Purpose
from workspaces.models.documents import (
    Artifact,
    ArtifactKind,
    ArtifactVersion,
    Document,
    DocumentPassage,
    DocumentPicture,
    DocumentQuerySet,
    DocumentStatus,
    DocumentVersion,
    OwnedQuerySet,
)
from workspaces.models.index import (
    CommonWord,
    EmbeddingModel,
    ModelState,
    PassageVector,
    PassageWord,
    PlaceStatistics,
    VectorIndex,
)
from workspaces.models.people import (
    Agent,
    AgentQuerySet,
    DoneRequest,
    Membership,
    PersonPicture,
    Retention,
    Role,
    SignIn,
    Spent,
    User,
    Workspace,
    WorkspaceQuerySet,
)
