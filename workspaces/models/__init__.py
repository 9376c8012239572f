"""Models of users, workspaces and their content."""

from workspaces.models.audit_and_webhooks import (
    AuditEvent,
    AuditEventQuerySet,
    DeliveryStatus,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
)
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
from workspaces.models.language_models import Budget, Connection, ConnectionQuerySet, ModelUse, Purpose
from workspaces.models.users import (
    ApiKey,
    DoneRequest,
    KeyScope,
    OAuthClient,
    OAuthCode,
    OAuthToken,
    PersonPicture,
    SignIn,
    Spent,
    TokenKind,
    User,
    WaitingMail,
)
from workspaces.models.workspaces import (
    Agent,
    AgentQuerySet,
    DirectoryGroup,
    GroupGrant,
    Invitation,
    Membership,
    Retention,
    Role,
    Workspace,
    WorkspaceQuerySet,
)
