"""The world of the access matrix and of the attacks: one of everything, created by the cast's owner."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from chat.chats.services import delete_chat
from chat.chats.sharing import create_link
from chat.import_export import import_jobs
from chat.models import Chat, Message, MessageRole, Run
from chat.models.imports import Import
from chat.runs.services import save_template
from chat.turns.services import supersede
from memories.models import Clearing, ClearingStatus, CopyKind, KeptCopy, Receipt, ReceiptItem, Scope
from memories.recalling.recall_tests import save_question
from memories.tidy import record_as_kept
from memories.writing.gate import Draft, delete_memory, save_memory
from tests.conftest import Cast
from tests.factories import (
    make_agent,
    make_artifact,
    make_asset,
    make_chat,
    make_connection,
    make_delivery,
    make_document,
    make_invitation,
    make_key_text,
    make_memory,
    make_message,
    make_node,
    make_prompt,
    make_user,
    make_webhook,
)
from tests.routes import Row
from workspaces import artifacts
from workspaces.accounts import program_authorizations
from workspaces.accounts.invitations import link_token
from workspaces.documents import documents
from workspaces.models import ApiKey, DocumentPicture, Membership, PersonPicture, Role, SignIn

Ids = dict[str, str]
EachRow = Callable[[Iterable[Row]], Iterator[tuple[Row, "World"]]]


@dataclass(frozen=True)
class World:
    """An object of every kind, created by the cast's owner in the shared workspace."""

    cast: Cast
    ids: dict[str, str]
    deleted_ids: dict[str, str]
    proposed_ids: dict[str, str]

    def url(self, row: Row) -> str:
        ids = self.ids | (self.deleted_ids if row.deleted else {})
        ids |= self.proposed_ids if row.proposed else {}
        ids |= {"message_id": self.ids[f"{row.message}_id"]} if row.message else {}
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda match: ids[match[1]], row.route)

    def address(self, row: Row) -> str:
        """Return the address, with the query for the shared workspace if the route does not name one."""
        return self.url(row) + row.query.replace("{ws}", self.ids["ws_id"]).replace(
            "{app}", self.ids["app_id"]
        )

    def data(self, row: Row) -> dict[str, Any]:
        def fill(text: Any) -> Any:
            if isinstance(text, list):
                return [fill(each) for each in text]
            if not isinstance(text, str):
                return text
            for name in ("ws", "mem", "agent", "node", "other_node"):
                text = text.replace(f"{{{name}}}", self.ids[f"{name}_id"])
            return text

        return {fill(name): fill(value) for name, value in row.data.items()}


def make_world(cast: Cast) -> World:
    ids = _members(cast) | _conversation(cast) | _documents(cast) | _programs(cast)
    draft = Draft("Olive sings", cast.workspace, cast.owner).to_review()
    proposed = save_memory(draft, by=cast.owner, now=timezone.now()).memory.public_id
    return World(cast, ids, _deleted(cast), {"memory_id": proposed, "mem_id": proposed})


def _members(cast: Cast) -> Ids:
    """Create the workspace's members and invitations."""
    member = make_user("max")
    Membership.objects.create(workspace=cast.workspace, user=member, role=Role.EDITOR)
    PersonPicture.objects.create(user=member, jpeg=b"\xff\xd8")
    invitation = make_invitation(cast.workspace, cast.owner)
    return {
        "workspace_id": cast.workspace.public_id,
        "ws_id": cast.workspace.public_id,
        "user_id": member.public_id,
        "invitation_id": invitation.public_id,
        "token": link_token(invitation),
        "session_id": SignIn.objects.create(user=cast.owner, session_key="elsewhere").public_id,
        "agent_id": make_agent(cast.owner, cast.workspace, name="Proofreader").public_id,
    }


def _conversation(cast: Cast) -> Ids:
    owner, workspace, now = cast.owner, cast.workspace, timezone.now()
    chat = make_chat(owner, workspace, title="Deadlines")
    question = make_message(chat, "When is the deadline?")
    answer = make_message(
        chat, "In March.", role=MessageRole.ASSISTANT, reply_to=question, error_code="length"
    )
    earlier = make_message(chat, "In May.", role=MessageRole.ASSISTANT, reply_to=question)
    supersede(chat.messages.filter(pk=earlier.pk), first=earlier, by=answer, now=now)
    link, share_token = create_link(chat, days=None, by=owner, now=now)
    return {
        "chat_id": chat.public_id,
        "question_id": question.public_id,
        "earlier_id": earlier.public_id,
        "message_id": answer.public_id,
        "msg_id": answer.public_id,
        "link_id": link.public_id,
        "share_token": share_token,
        "prompt_id": make_prompt(workspace, owner).public_id,
        **_memory_rows(cast, chat, question, answer),
        **_brought_and_run(cast),
    }


def _memory_rows(cast: Cast, chat: Chat, question: Message, answer: Message) -> Ids:
    """Create a memory extracted from a question, and its dependent rows."""
    owner, workspace, now = cast.owner, cast.workspace, timezone.now()
    source: dict[str, Any] = {"source_chat_id": chat.public_id, "source_message_id": question.public_id}
    memory = make_memory("The deadline is March 15", by=owner, workspace=workspace, **source)
    receipt = Receipt.objects.create(
        message_id=answer.public_id, workspace=workspace, user=owner, ranking="hybrid", threshold=0.3
    )
    item = ReceiptItem.objects.create(
        receipt=receipt, memory=memory, position=1, score=0.5, content=memory.content, used=True
    )
    KeptCopy.objects.create(memory=memory, kind=CopyKind.ITEM, row_id=item.pk)
    return {
        "memory_id": memory.public_id,
        "mem_id": memory.public_id,
        "item_id": str(item.pk),
        "ask_id": save_question(workspace, "When is it due?", [memory], by=owner, now=now).public_id,
        "kept_id": str(record_as_kept(memory, by=owner, now=now).pk),
        "asset_id": make_asset(memory).public_id,
    }


def _cleared(cast: Cast) -> Clearing:
    scope = {"scope": Scope.USER, "place": -cast.owner.pk, "status": ClearingStatus.CLEARED}
    return Clearing.objects.create(workspace=cast.workspace, by=cast.owner, **scope)


def _brought_and_run(cast: Cast) -> Ids:
    owner, workspace, now = cast.owner, cast.workspace, timezone.now()
    brought = import_jobs.begin(
        owner, workspace=workspace, filename="list.txt", pieces=[b"Cats purr"], now=now
    )
    Import.objects.filter(pk=brought.pk).update(checked_at=now)
    said = {"mode": "loop", "objective": "Compare the offers", "status": "done", "deadline_at": now}
    done = Run.objects.create(workspace=workspace, user=owner, **said)
    return {
        "clearing_id": _cleared(cast).public_id,
        "import_id": brought.public_id,
        "run_id": done.public_id,
        "template_id": save_template(done, "Compared", by=owner, now=now).public_id,
    }


def _documents(cast: Cast) -> Ids:
    """Create nodes, an artifact, a document."""
    owner, workspace = cast.owner, cast.workspace
    document = make_document(owner, workspace)
    DocumentPicture.objects.create(document=document, jpeg=b"\xff\xd8", width=1, height=1)
    page = make_artifact(owner, workspace, "<p>Hello</p>", kind="html")
    return {
        "node_id": make_node(owner, workspace, name="Maria").public_id,
        "other_node_id": make_node(owner, workspace, name="Launch").public_id,
        "artifact_id": page.public_id,
        "art_id": page.public_id,
        "document_id": document.public_id,
        "doc_id": document.public_id,
        "number": "1",
    }


def _programs(cast: Cast) -> Ids:
    """Create programs' rows: a key, an OAuth client, a webhook, a connection."""
    make_key_text(cast.owner, cast.workspace)
    hook = make_webhook(cast.workspace, cast.owner)
    return {
        "key_id": ApiKey.objects.get(user=cast.owner).public_id,
        "app_id": program_authorizations.register(
            "Claude", ["https://example.org/back"], now=timezone.now()
        ).public_id,
        "resource": "mcp",
        "model": "built-in",
        "webhook_id": hook.public_id,
        "hook_id": hook.public_id,
        "delivery_id": make_delivery(hook).public_id,
        # Its test sends nothing: a person's connection may not use an address of this machine.
        "connection_id": make_connection(cast.owner, base_url="http://127.0.0.1:9/v1").public_id,
    }


def _deleted(cast: Cast) -> Ids:
    owner, workspace, now = cast.owner, cast.workspace, timezone.now()
    memory = make_memory("Olive is vegetarian", by=owner, workspace=workspace)
    chat = make_chat(owner, workspace, title="Gone")
    page = make_artifact(owner, workspace, kind="html")
    document = make_document(owner, workspace, "Nobody reads this.")
    delete_memory(memory, by=owner, now=now)
    delete_chat(chat, by=owner, now=now)
    artifacts.delete(page, by=owner, now=now)
    documents.delete(document, by=owner, now=now)
    return {
        "artifact_id": page.public_id,
        "art_id": page.public_id,
        "document_id": document.public_id,
        "doc_id": document.public_id,
        "chat_id": chat.public_id,
        "memory_id": memory.public_id,
        "mem_id": memory.public_id,
    }
