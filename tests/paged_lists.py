"""Every list of the API with a cursor, and how to add and remove a row. tests/test_api_paging.py reads them."""

from datetime import timedelta
from itertools import count
from typing import Any

from django.utils import timezone

from chat.models import Chat, Message, Run, ShareLink
from chat.models.imports import (
    Import,
    ImportKind,
    ImportRow,
    Outcome,
)
from memories import topics
from memories.models import Asset, CopyKind, KeptCopy, Memory, MemoryNode, RecallQuestion
from memories.writing import review
from memories.writing.gate import (
    Draft,
    delete_memory,
    edit_memory,
    save_memory,
)
from tests.conftest import Cast
from tests.factories import (
    make_chat,
    make_connection,
    make_delivery,
    make_document,
    make_key_text,
    make_memory,
    make_message,
    make_prompt,
    make_user,
    make_webhook,
    make_workspace,
)
from workspaces.accounts.invitations import invite
from workspaces.models import Agent, ApiKey, Membership, Role
from workspaces.models.audit_and_webhooks import Webhook
from workspaces.models.documents import Artifact, Document
from workspaces.models.language_models import Connection

API, V1 = "/chat/api", "/api/v1"


class Listed:
    """A list: its address in the schema, and how to add and remove a row over the API."""

    address = ""
    query: dict[str, Any] = {}
    removable = True

    def __init__(self, cast: Cast) -> None:
        self.cast, self.number = cast, count()
        self.setup()

    def setup(self) -> None: ...

    @property
    def ids(self) -> dict[str, str]:
        return {"workspace_id": self.cast.workspace.public_id}

    def add(self) -> Any:
        raise NotImplementedError

    def remove(self, row: Any) -> None:
        row.delete()

    def name(self, row: Any) -> str:
        """Return the id of an added row."""
        return str(row.public_id)

    def listed_name(self, item: dict[str, Any]) -> str:
        """Return the id of the same row in the list."""
        return str(item["id"])


class Workspaces(Listed):
    address = f"{API}/workspaces"

    def add(self) -> Any:
        return make_workspace(owner=self.cast.owner, name="One more")


class Members(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/members"

    def add(self) -> Any:
        return Membership.objects.create(workspace=self.cast.workspace, user=make_user(), role=Role.VIEWER)

    def name(self, row: Membership) -> str:
        return row.user.public_id


class Invitations(Listed):
    """Invitations to the workspace's owner, into other people's workspaces."""

    address = f"{API}/invitations"

    def add(self) -> Any:
        host = make_user()
        return invite(
            make_workspace(owner=host), user=self.cast.owner, role=Role.VIEWER, by=host, now=timezone.now()
        )

    def name(self, row: Any) -> str:
        return str(row.workspace.public_id)

    def listed_name(self, item: dict[str, Any]) -> str:
        return str(item["workspace_id"])


class Agents(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/agents"

    def add(self) -> Agent:
        return Agent.objects.create(workspace=self.cast.workspace, name=f"Writer {next(self.number)}")


class Connections(Listed):
    address = f"{API}/connections"

    def add(self) -> Connection:
        return make_connection()


class OrganisationAgents(Agents):
    address = f"{V1}/agents"

    @property
    def query(self) -> dict[str, Any]:  # type: ignore[override]
        return self.ids


class Memories(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/memories"

    def add(self) -> Memory:
        return make_memory(f"Fact number {next(self.number)}", self.cast.owner, self.cast.workspace)

    def remove(self, row: Memory) -> None:
        delete_memory(row, by=self.cast.owner, now=timezone.now())


class Tidy(Memories):
    address = f"{API}/workspaces/{{workspace_id}}/tidy"
    query = {"show": "unused"}

    def add(self) -> Memory:
        memory = super().add()
        long_ago = timezone.now() - timedelta(days=40)
        Memory.objects.filter(pk=memory.pk).update(created_at=long_ago)
        return memory


class Proposals(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/proposals"

    def add(self) -> Memory:
        owner, content = self.cast.owner, f"Fact number {next(self.number)}"
        draft = Draft(content, self.cast.workspace, owner).to_review()
        return save_memory(draft, by=owner, now=timezone.now(), dedupe="create").memory

    def remove(self, row: Memory) -> None:
        review.reject(row, by=self.cast.owner, now=timezone.now())


class Copies(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/copies"

    def add(self) -> Memory:
        memory = make_memory(f"Fact number {next(self.number)}", self.cast.owner, self.cast.workspace)
        KeptCopy.objects.create(memory=memory, kind=CopyKind.EXCERPT)
        return memory

    def remove(self, row: Memory) -> None:
        row.kept_copies.all().delete()

    def listed_name(self, item: dict[str, Any]) -> str:
        return str(item["memory_id"])


class OrganisationMemories(Memories):
    address = f"{V1}/memories"

    @property
    def query(self) -> dict[str, Any]:  # type: ignore[override]
        return self.ids


class Revisions(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/memories/{{memory_id}}/revisions"
    removable = False

    def setup(self) -> None:
        self.memory = make_memory("It begins", self.cast.owner, self.cast.workspace)

    @property
    def ids(self) -> dict[str, str]:
        return super().ids | {"memory_id": self.memory.public_id}

    def add(self) -> str:
        number = next(self.number)
        edit_memory(self.memory, by=self.cast.owner, now=timezone.now(), content=f"Version {number}")
        return f"Version {number - 1}" if number else "It begins"

    def name(self, row: str) -> str:
        return row

    def listed_name(self, item: dict[str, Any]) -> str:
        return str(item["before"].get("content", ""))


class Chats(Listed):
    address = f"{API}/chats"

    def add(self) -> Chat:
        return make_chat(self.cast.owner, self.cast.workspace)


class Messages(Listed):
    address = f"{API}/{{chat_id}}/messages"

    def setup(self) -> None:
        self.chat = make_chat(self.cast.owner, self.cast.workspace)

    @property
    def ids(self) -> dict[str, str]:
        return {"chat_id": self.chat.public_id}

    def add(self) -> Message:
        return make_message(self.chat, "Hello")


class ChatLinks(Messages):
    address = f"{API}/chats/{{chat_id}}/links"

    def add(self) -> Any:
        link = ShareLink(chat=self.chat, made_by=self.cast.owner, message_ids=[], shared_at=timezone.now())
        link.token_hash = f"hash {next(self.number)}"
        link.save()
        return link


class WorkspaceLinks(ChatLinks):
    address = f"{API}/workspaces/{{workspace_id}}/links"

    @property
    def ids(self) -> dict[str, str]:
        return {"workspace_id": self.cast.workspace.public_id}


class Versions(Messages):
    address = f"{API}/{{chat_id}}/messages/{{message_id}}/versions"

    def setup(self) -> None:
        super().setup()
        self.message = make_message(self.chat, "Hello now")

    @property
    def ids(self) -> dict[str, str]:
        return super().ids | {"message_id": self.message.public_id}

    def add(self) -> Message:
        aside = {"superseded_by": self.message, "superseded_at": timezone.now()}
        return make_message(self.chat, "Hello", **aside)


class Assets(Listed):
    address = f"{V1}/memories/{{memory_id}}/assets"

    def setup(self) -> None:
        self.memory = make_memory("It begins", self.cast.owner, self.cast.workspace)

    @property
    def ids(self) -> dict[str, str]:
        return {"memory_id": self.memory.public_id}

    @property
    def query(self) -> dict[str, Any]:  # type: ignore[override]
        return {"workspace_id": self.cast.workspace.public_id}

    def add(self) -> Asset:
        file_name = f"none-{next(self.number)}"
        return Asset.objects.create(memory=self.memory, name="a.txt", size=1, file_name=file_name)


class Imports(Listed):
    address = f"{API}/imports"

    def add(self) -> Import:
        return Import.objects.create(user=self.cast.owner, kind=ImportKind.STATEMENTS, size=1)


class ImportRows(Listed):
    address = f"{API}/imports/{{import_id}}/rows"

    def setup(self) -> None:
        self.imported = Import.objects.create(user=self.cast.owner, kind=ImportKind.STATEMENTS, size=1)

    @property
    def ids(self) -> dict[str, str]:
        return {"import_id": self.imported.public_id}

    def add(self) -> ImportRow:
        number = next(self.number)
        return ImportRow.objects.create(
            of=self.imported, number=number, offset=0, kind="memory", outcome=Outcome.NEW
        )

    def name(self, row: ImportRow) -> str:
        return str(row.number)

    def listed_name(self, item: dict[str, Any]) -> str:
        return str(item["line"])


class Nodes(Listed):
    address = f"{V1}/memory-nodes"

    def make(self) -> MemoryNode:
        name = f"Node {next(self.number):04}"
        return topics.create_node(self.cast.workspace, name=name, by=self.cast.owner, now=timezone.now())

    add = make

    @property
    def query(self) -> dict[str, Any]:  # type: ignore[override]
        return {"workspace_id": self.cast.workspace.public_id}


class NodeMemories(Nodes):
    address = f"{V1}/memory-nodes/{{node_id}}/memories"

    def setup(self) -> None:
        self.node = self.make()

    @property
    def ids(self) -> dict[str, str]:
        return {"node_id": self.node.public_id}

    def add(self) -> Any:
        memory = make_memory(f"Fact number {next(self.number)}", self.cast.owner, self.cast.workspace)
        topics.link_memory(self.node, memory, now=timezone.now())
        return memory

    def remove(self, row: Any) -> None:
        topics.unlink_memory(self.node, row)


class NodeRelations(NodeMemories):
    address = f"{V1}/memory-nodes/{{node_id}}/relations"

    def add(self) -> Any:
        other = self.make()
        topics.relate(self.node, other, "knows", now=timezone.now())
        return other

    def remove(self, row: Any) -> None:
        topics.unrelate(self.node, row, "knows")

    def listed_name(self, item: dict[str, Any]) -> str:
        return str(item["target"]["id"])


class Keys(Listed):
    address = f"{API}/keys"

    def add(self) -> ApiKey:
        make_key_text(self.cast.owner, self.cast.workspace)
        return ApiKey.objects.latest("pk")


class Documents(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/documents"

    def add(self) -> Document:
        number = str(next(self.number))
        values = {
            "title": f"Paper {number}",
            "file_name": number,
            "sha256": number,
            "media_type": "text/plain",
        }
        return Document.objects.create(workspace=self.cast.workspace, size=1, **values)


class DocumentVersions(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/documents/{{document_id}}/versions"

    def setup(self) -> None:
        self.document = make_document(self.cast.owner, self.cast.workspace, embedded=False)

    @property
    def ids(self) -> dict[str, str]:
        return super().ids | {"document_id": self.document.public_id}

    def add(self) -> Any:
        number = next(self.number)
        file = {"file_name": f"{number}", "media_type": "text/plain", "size": 1, "sha256": f"{number}"}
        return self.document.versions.create(version=number, version_at=timezone.now(), **file)

    def name(self, row: Any) -> str:
        return str(row.version)

    def listed_name(self, item: dict[str, Any]) -> str:
        return str(item["version"])


class Artifacts(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/artifacts"

    def add(self) -> Artifact:
        values = {"title": f"Sums {next(self.number)}", "kind": "code", "content": "1 + 1", "gist": "1 + 1"}
        return Artifact.objects.create(workspace=self.cast.workspace, **values)


class ArtifactVersions(Artifacts):
    address = f"{API}/workspaces/{{workspace_id}}/artifacts/{{artifact_id}}/versions"

    def setup(self) -> None:
        self.artifact = super().add()

    @property
    def ids(self) -> dict[str, str]:
        return super().ids | {"artifact_id": self.artifact.public_id}

    def add(self) -> Any:
        number = next(self.number)
        return self.artifact.versions.create(number=number, title=f"Sums {number}", content="1", size=1)

    def name(self, row: Any) -> str:
        return str(row.number)

    def listed_name(self, item: dict[str, Any]) -> str:
        return str(item["number"])


class RecallQuestions(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/recall-questions"

    def add(self) -> RecallQuestion:
        values = {"text": f"Question {next(self.number)}?", "created_by": self.cast.owner}
        return RecallQuestion.objects.create(workspace=self.cast.workspace, **values)


class Runs(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/runs"

    def add(self) -> Run:
        values = {"objective": "Compare the offers", "mode": "loop", "deadline_at": timezone.now()}
        return Run.objects.create(workspace=self.cast.workspace, user=self.cast.owner, **values)


class RunTemplates(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/runs/templates"

    def add(self) -> Any:
        values = {"name": f"Template {next(self.number)}", "mode": "loop", "objective": "Compare the offers"}
        return self.cast.workspace.run_templates.create(user=self.cast.owner, **values)


class Prompts(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/prompts"

    def add(self) -> Any:
        return make_prompt(self.cast.workspace, self.cast.owner, name=f"Prompt {next(self.number)}")


class RunMemory(Runs):
    address = f"{API}/workspaces/{{workspace_id}}/runs/{{run_id}}/memory"

    def setup(self) -> None:
        self.run = super().add()

    @property
    def ids(self) -> dict[str, str]:
        return super().ids | {"run_id": self.run.public_id}

    def add(self) -> Any:
        values = {"kind": "value", "json": "1", "size": 1, "created_at": timezone.now()}
        return self.run.entries.create(key=f"entry {next(self.number)}", **values)

    def name(self, row: Any) -> str:
        return str(row.key)

    def listed_name(self, item: dict[str, Any]) -> str:
        return str(item["key"])


class Webhooks(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/webhooks"

    def add(self) -> Webhook:
        values = {
            "name": f"Wiki {next(self.number)}",
            "url": "https://example.org/",
            "events": ["memory.saved"],
        }
        return Webhook.objects.create(workspace=self.cast.workspace, created_by=self.cast.owner, **values)


class Deliveries(Listed):
    address = f"{API}/workspaces/{{workspace_id}}/webhooks/{{webhook_id}}/deliveries"

    def setup(self) -> None:
        self.webhook = make_webhook(self.cast.workspace, self.cast.owner)

    @property
    def ids(self) -> dict[str, str]:
        return super().ids | {"webhook_id": self.webhook.public_id}

    def add(self) -> Any:
        return make_delivery(self.webhook)


LISTS: list[type[Listed]] = [
    Keys,
    Webhooks,
    Deliveries,
    Documents,
    DocumentVersions,
    Artifacts,
    ArtifactVersions,
    RecallQuestions,
    Runs,
    RunMemory,
    RunTemplates,
    Prompts,
    Workspaces,
    Members,
    Invitations,
    Agents,
    Connections,
    OrganisationAgents,
    Memories,
    Tidy,
    OrganisationMemories,
    Proposals,
    Copies,
    Revisions,
    Chats,
    Messages,
    ChatLinks,
    WorkspaceLinks,
    Versions,
    Assets,
    Imports,
    ImportRows,
    Nodes,
    NodeMemories,
    NodeRelations,
]
