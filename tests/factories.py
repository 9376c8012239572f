"""Factories for tests, which use the same functions as the product."""

from datetime import datetime, timedelta
from itertools import count
from typing import Any

from django.contrib.auth.hashers import make_password
from django.utils import timezone

from chat.chats.personal_memories import PromptPolicy
from chat.chats.saved_prompts import save_prompt
from chat.models import Chat, Message, MessageRole, SavedPrompt
from memories.assets import attach
from memories.models import Asset, Memory, MemoryNode
from memories.topics import create_node
from memories.writing.gate import Draft, save_memory
from tests.reading import read_here
from workspaces import artifacts, tasks
from workspaces.access import default_workspace
from workspaces.accounts import program_authorizations
from workspaces.accounts.invitations import accept_invited, create_invitation, invite
from workspaces.accounts.keys import make_key
from workspaces.actions.workspaces import create_agent
from workspaces.artifacts import ARTIFACTS, Written
from workspaces.data_policy import DataPolicy
from workspaces.documents import documents, reading_jobs
from workspaces.index.reembedding import embed_passages
from workspaces.models import (
    Agent,
    Artifact,
    Document,
    Invitation,
    KeyScope,
    Membership,
    Role,
    User,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    Workspace,
)
from workspaces.models.documents import DOCUMENT
from workspaces.models.language_models import Connection
from workspaces.models.users import looks_of
from workspaces.webhooks.hooks import create_webhook

PASSWORD = "correct horse battery"
_number = count(1)


HERE = DataPolicy(local_only=False, leaves=False, personal=True)  # the policy that most tests use


def make_user(username: str | None = None, **fields: Any) -> User:
    return User.objects.create_user(username or f"person{next(_number)}", password=PASSWORD, **fields)


def make_people(*usernames: str) -> list[User]:
    """Create users in one statement, without checks for look-alike names: half of all tests begin with the
    same four.
    """
    people = [
        User(username=name, looks=looks_of(name), password=make_password(PASSWORD)) for name in usernames
    ]
    User.objects.bulk_create(people)
    return people


def make_workspace(
    *, owner: User, editor: User | None = None, viewer: User | None = None, name: str = "Shared"
) -> Workspace:
    workspace = Workspace.objects.create(name=name)
    places = ((owner, Role.OWNER), (editor, Role.EDITOR), (viewer, Role.VIEWER))
    Membership.objects.bulk_create(
        Membership(workspace=workspace, user=user, role=role) for user, role in places if user is not None
    )
    return workspace


def add_member(workspace: Workspace, *, user: User, role: str, by: User) -> Membership:
    """Invite the user and accept."""
    invite(workspace, user=user, role=role, by=by, now=timezone.now())
    return accept_invited(by=user, now=timezone.now(), workspace=workspace)


def make_chat(by: User, workspace: Workspace | None = None, **fields: Any) -> Chat:
    return Chat.objects.create(workspace=workspace or default_workspace(by), created_by=by, **fields)


def make_message(chat: Chat, content: str, role: str = MessageRole.USER, **fields: Any) -> Message:
    if role == MessageRole.USER:
        fields.setdefault("author", chat.created_by)
    return Message.objects.create(chat=chat, content=content, role=role, **fields)


def shown_to(user: User) -> PromptPolicy:
    """Return the prompt policy of a chat that only this user reads, for a model on this machine."""
    return PromptPolicy(user, since=None, model_is_remote=False)


def make_memory(
    content: str, by: User, workspace: Workspace | None = None, *, now: datetime | None = None, **fields: Any
) -> Memory:
    """Save a memory through the writer. Duplicates are stored as well, since tests mean them."""
    draft = Draft(content=content, workspace=workspace or default_workspace(by), author=by, **fields)
    return save_memory(draft, by=by, now=now or timezone.now(), dedupe="create").memory


def make_agent(by: User, workspace: Workspace | None = None, *, name: str = "", **fields: Any) -> Agent:
    place, name = workspace or default_workspace(by), name or f"Assistant {next(_number)}"
    return create_agent(place, name=name, by=by, now=timezone.now(), **fields)


def make_asset(memory: Memory, content: bytes = b"Hello", name: str = "note.txt") -> Asset:
    return attach(memory, name=name, content=[content], by=memory.author, now=timezone.now())


def make_document(
    by: User,
    workspace: Workspace | None = None,
    text: str = "The oven is turned off at night.",
    *,
    embedded: bool = True,
    **given: Any,
) -> Document:
    """Create a document, and read and embed it as its jobs do."""
    place = workspace or default_workspace(by)
    given.setdefault("title", f"Document {next(_number)}")
    made = documents.write(place, text=text, by=by, now=timezone.now(), **given).document
    with read_here():
        reading_jobs.read(made.pk, now=timezone.now())
    if embedded:
        tasks.embed_passages(kind=DOCUMENT, refs=list(made.passages.values_list("pk", flat=True)))
    made.refresh_from_db()
    return made


def make_artifact(
    by: User,
    workspace: Workspace | None = None,
    content: str = "print('hello')",
    *,
    title: str = "",
    language: str = "",
    kind: str = "code",
    embedded: bool = True,
    **given: Any,
) -> Artifact:
    """Create an artifact, and embed it as its job does."""
    written = Written(title or f"Artifact {next(_number)}", content, language)
    place = workspace or default_workspace(by)
    made = artifacts.create_artifact(place, written, kind=kind, by=by, now=timezone.now(), **given)
    if embedded:
        embed_passages(ARTIFACTS, [made.pk])
    return made


def make_node(by: User, workspace: Workspace | None = None, *, name: str = "", **fields: Any) -> MemoryNode:
    place, name = workspace or default_workspace(by), name or f"Node {next(_number)}"
    return create_node(place, name=name, by=by, now=timezone.now(), **fields)


def make_key_text(by: User, workspace: Workspace | None = None, *, scope: str = KeyScope.WRITE) -> str:
    """Return a new API key in clear text."""
    place, name = workspace or default_workspace(by), f"key {next(_number)}"
    return make_key(place, by=by, name=name, scope=scope, expires_at=None, now=timezone.now())[1]


def make_token_text(
    by: User,
    workspace: Workspace,
    *,
    scope: str = KeyScope.WRITE,
    resource: str = program_authorizations.EVERYWHERE,
) -> str:
    """Return an access token of a new program that this user authorized."""
    back, now = "https://example.org/back", timezone.now()
    program = program_authorizations.register(f"Program {next(_number)}", [back], now=now)
    agreed = program_authorizations.CheckedRequest(program, back, True, "a" * 43, resource)
    code = program_authorizations.find_code(
        program.public_id,
        program_authorizations.store_consent(agreed, workspace, scope=scope, by=by, now=now),
    )
    assert code is not None
    return program_authorizations.exchange_code(code, now=now).access


def make_connection(by: User | None = None, **values: Any) -> Connection:
    """Create a connection for everyone, or ``by``'s own, without the permission check."""
    key = values.pop("api_key", "sk-a-stored-key")
    values = {
        "name": f"Connection {next(_number)}",
        "base_url": "https://api.example.org/v1",
        "model": "m",
    } | values
    made = Connection(owner=by, **values)
    made.set_key(key)
    made.save()
    return made


def make_prompt(workspace: Workspace, by: User, **given: Any) -> SavedPrompt:
    values = {"name": "Polite no", "text": "Decline {{offer}} politely.", "personal": False} | given
    return save_prompt(workspace, by=by, now=timezone.now(), **values)


def make_invitation(workspace: Workspace, by: User, **given: Any) -> Invitation:
    values = {"role": Role.VIEWER, "most": 1, "lasts": timedelta(days=7), "now": timezone.now()} | given
    return create_invitation(workspace, by=by, **values)


def make_webhook(workspace: Workspace, by: User, **fields: Any) -> Webhook:
    values = {"name": "Wiki", "url": "https://example.org/hooks", "events": list(WebhookEvent.values)}
    return create_webhook(workspace, by=by, now=timezone.now(), **values | fields)[0]


def make_delivery(webhook: Webhook, **fields: Any) -> WebhookDelivery:
    values: dict[str, Any] = {"event": "memory.saved", "about": "mem_" + "a" * 24, "action": "create"}
    values |= {"next_attempt_at": timezone.now()} | fields
    return WebhookDelivery.objects.create(webhook=webhook, **values)
