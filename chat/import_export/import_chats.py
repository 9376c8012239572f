"""Import of chats, messages and receipts, including earlier versions of conversations.

A line refers only to messages on earlier lines. If a message replaced earlier ones, its line lists them under
``supersedes``. If an older version was restored, the line of the replaced message names the older one under
``superseded_by``.
"""

import math
from typing import Any

from django.db.models import Prefetch
from django.utils.translation import gettext as _

from chat.chats.services import publish_chat_list
from chat.import_export.import_lines import Id, Places, Record, resolve, text_of
from chat.models import (
    MESSAGE_LENGTH,
    TITLE_LENGTH,
    Chat,
    Message,
    MessageQuerySet,
    MessageRole,
    MessageStatus,
    PersonalUse,
)
from memories.models import Memory, Receipt, ReceiptItem
from memories.models.recall import Strength
from memories.writing.drafts import UNSTORABLE
from memories.writing.export_lines import import_marks, read_moment, refuse_hidden_secrets, storable
from memoryhub.errors import Invalid
from memoryhub.localization import grouped
from memoryhub.stored_messages import kept
from workspaces.models import Role, User, Workspace
from workspaces.quotas import importer_key, require_room


def with_versions(messages: MessageQuerySet) -> MessageQuerySet:
    """Prefetch the versions that ``version_fields`` reads. One additional query."""
    set_aside = Message.objects.only("public_id", "superseded_by_id").order_by("pk")
    loaded = messages.select_related("superseded_by")
    return loaded.prefetch_related(Prefetch("supersedes", set_aside))


def version_fields(message: Message) -> dict[str, Any]:
    """Return the fields ``supersedes`` and ``superseded_by`` of a message's line."""
    by = message.superseded_by
    return {
        "supersedes": [other.public_id for other in message.supersedes.all() if other.pk < message.pk],
        "superseded_by": by.public_id if by is not None and by.pk < message.pk else None,
    }


def link_versions(wanted: dict[Record, tuple[str, str]], messages: dict[Record, Message], user: User) -> None:
    """Set ``superseded_by`` of replaced messages to the messages that replaced them.

    ``wanted`` maps each line to (message id in the file, local id of the chat), and ``messages`` to the message that
    was just stored for it. Earlier imported messages are changed only if they have no successor yet.
    """
    named: dict[Record, list[tuple[str, str]]] = {}
    for record, (_id, chat) in wanted.items():
        others = record.line.get("supersedes")
        ids = [each for each in others if isinstance(each, str)] if isinstance(others, list) else []
        by = record.line.get("superseded_by")
        named[record] = [(each, chat) for each in [*ids, by] if isinstance(each, str)]
    local_ids = resolve("msg", {pair for pairs in named.values() for pair in pairs}, user)
    for record, pairs in named.items():
        message, by = messages.get(record), record.line.get("superseded_by")
        if message is None or not pairs:
            continue
        here = {pair[0]: local_ids[pair].local for pair in pairs if local_ids[pair].is_here}
        before = Message.objects.current().filter(chat_id=message.chat_id, pk__lt=message.pk)
        later = before.filter(public_id=here.pop(by, "")).first() if isinstance(by, str) else None
        if later is not None and message.superseded_at is not None:
            Message.objects.filter(pk=message.pk).update(superseded_by=later)
        waiting = before.filter(public_id__in=here.values(), superseded_at__isnull=False)
        waiting.update(superseded_by=message)


ITEMS = 100  # limit for one receipt
SPANS = 2  # limit for one item
SMALL = 32_767
NO_CHAT = kept("its chat is not in the file, was refused, or belongs to somebody else")

Placed = list[tuple[Record, Workspace]]


def import_chats(records: list[Record], places: Places) -> None:
    chats: dict[str, Chat] = {}
    ids = chat_ids(places.sort(records), places, "id")
    for record, (workspace, chat_id) in ids.items():
        if chat_id.is_here or chat_id.local in chats:
            record.is_known(chat_id.local)
            continue
        with record.refused_on_error():
            chats[chat_id.local] = _chat(record.line, chat_id.local, workspace, places)
            record.became = chat_id.local
    if places.stores and chats:
        require_room("chats", places.user, len(chats))
        Chat.objects.bulk_create(chats.values())
        for chat in {chat.workspace_id: chat for chat in chats.values()}.values():
            publish_chat_list(chat)


def import_messages(records: list[Record], places: Places) -> None:
    chats, wanted = _in_chats(records, places, "id")
    ids = resolve("msg", wanted.values(), places.user)
    messages: dict[str, Message] = {}
    for record, pair in wanted.items():
        chat, message_id = chats.get(pair[1]), ids[pair]
        if message_id.is_here or message_id.local in messages:
            record.is_known(message_id.local)
        elif places.stores and (chat is None or not _may_add_to(chat, places)):
            record.refuse(NO_CHAT)
        else:
            with record.refused_on_error():
                messages[message_id.local] = _message(record.line, message_id.local, chat or Chat(), places)
    if places.stores and messages:
        # Otherwise a member who joined before the date of a personal answer could read it.
        marked = {message.chat_id for message in messages.values() if message.is_marked}
        Chat.objects.filter(pk__in=marked).update(opened_at=places.now)
        Message.objects.bulk_create(messages.values())
        new = {record: pair for record, pair in wanted.items() if record.is_new}
        _link_answers(new, messages, places)
        stored = {
            record: messages[ids[pair].local] for record, pair in new.items() if ids[pair].local in messages
        }
        link_versions(new, stored, places.user)


def import_receipts(records: list[Record], places: Places) -> None:
    """Store the receipts of answers. Items whose memories do not exist here are left out."""
    chats, wanted = _in_chats(records, places, "message")
    ids = resolve("msg", wanted.values(), places.user)
    there = {message_id.local for message_id in ids.values()}
    known_ids = set(Receipt.objects.filter(message_id__in=there).values_list("message_id", flat=True))
    new_receipts: list[tuple[Receipt, list[dict[str, Any]]]] = []
    for record, pair in wanted.items():
        chat, message_id = chats.get(pair[1]), ids[pair]
        if message_id.local in known_ids:
            record.is_known(message_id.local)
        elif places.stores and not message_id.is_here:
            record.refuse(kept("its answer is not in the file or was refused"))
        elif chat is not None and not _may_add_to(chat, places):
            record.refuse(NO_CHAT)
        else:
            with record.refused_on_error():
                new_receipts.append((_receipt(record.line, message_id.local, places), _items(record.line)))
                known_ids.add(message_id.local)
    if places.stores and new_receipts:
        _store_receipts(new_receipts, places)


def chat_ids(placed: Placed, places: Places, name: str) -> dict[Record, tuple[Workspace, Id]]:
    """Return the workspace and the local chat id of each line. ``name`` is the field of a line with the chat's id."""
    wanted = {record: (str(record.line.get(name)), workspace.public_id) for record, workspace in placed}
    ids = resolve("chat", wanted.values(), places.user)
    return {record: (workspace, ids[wanted[record]]) for record, workspace in placed}


def _in_chats(
    records: list[Record], places: Places, name: str
) -> tuple[dict[str, Chat], dict[Record, tuple[str, str]]]:
    """Return the existing chats by id, and for each line (its id in the field ``name``, the local id of its chat)."""
    ids = chat_ids(places.sort(records), places, "chat")
    wanted = {record: (str(record.line.get(name)), chat_id.local) for record, (_, chat_id) in ids.items()}
    chats = Chat.objects.visible_to(places.user).filter(public_id__in={chat for _, chat in wanted.values()})
    loaded = chats.select_related("workspace").with_roles()
    return {chat.public_id: chat for chat in loaded}, wanted


def _may_add_to(chat: Chat, places: Places) -> bool:
    """Return whether the importer may add messages to the chat: as its creator or as an owner of the workspace."""
    return chat.created_by_id == places.user.pk or chat.role == Role.OWNER


def _chat(line: dict[str, Any], local: str, workspace: Workspace, places: Places) -> Chat:
    is_private = _flag(line, "is_private", False)
    by = None if is_private else places.person(workspace)(text_of(line, "created_by", 150))
    agent = places.agent(text_of(line, "agent", 64), workspace)
    created_at = _past(line, "created_at", places) or places.now
    return Chat(
        public_id=local,
        workspace=workspace if workspace.pk else None,
        created_by=by or places.user,
        brought_by=importer_key(places.user, by or places.user),
        is_imported=by not in (None, places.user) or line.get("imported") is True,
        agent=agent if agent is not None and agent.pk else None,
        title=" ".join(text_of(line, "title", TITLE_LENGTH).split()),
        memory_enabled=line["memory_enabled"] if isinstance(line.get("memory_enabled"), bool) else None,
        is_private=is_private,
        created_at=created_at,
        active_at=_past(line, "active_at", places) or created_at,
        deleted_at=_past(line, "deleted_at", places),
    )


def _message(line: dict[str, Any], local: str, chat: Chat, places: Places) -> Message:
    role = text_of(line, "role", 20)
    if role not in MessageRole.values:
        raise Invalid(fields={"role": _("must be one of %s") % ", ".join(MessageRole.values)})
    status = text_of(line, "status", 20) or MessageStatus.DONE
    if status not in MessageStatus.values:
        raise Invalid(fields={"status": _("must be one of %s") % ", ".join(MessageStatus.values)})
    content = line.get("content")
    if not isinstance(content, str) or UNSTORABLE.search(content):
        raise Invalid(fields={"content": _("must be text")})
    if role == MessageRole.USER and not 0 < len(content) <= MESSAGE_LENGTH:
        raise Invalid(fields={"content": _("must have 1 to %s characters") % grouped(MESSAGE_LENGTH)})
    created_at = _past(line, "created_at", places) or places.now
    name = text_of(line, "author", 150)
    author = _who(line, name, places) if name else None
    attempt = line.get("attempt", 1)
    return Message(
        public_id=local,
        chat=chat if chat.pk else None,
        role=role,
        author=author,
        **_marks(line, author, places),
        **_rests_on(line, role),
        content=content,
        status=MessageStatus.STOPPED if status == MessageStatus.STREAMING else status,
        error_code=text_of(line, "error_code", 30),
        error=text_of(line, "error", 500),
        memory_enabled=_flag(line, "memory_enabled", False),
        model=text_of(line, "model", 200),
        attempt=attempt if isinstance(attempt, int) and 0 < attempt <= SMALL else 1,
        created_at=created_at,
        finished_at=_past(line, "finished_at", places),
        superseded_at=_past(line, "superseded_at", places),
    )


def _marks(line: dict[str, Any], author: User | None, places: Places) -> dict[str, Any]:
    """Return a message's fields ``imported_by`` and ``imported_at``: both None for the importer's own, unmarked words.

    Answers, which have no author, are marked too, because another installation may have written them.
    """
    name = text_of(line, "imported_by", 150)
    at = read_moment("imported_at", line.get("imported_at"))
    return import_marks(author, places.user, at, lambda: _who(line, name, places), now=places.now)


def _rests_on(line: dict[str, Any], role: str) -> dict[str, Any]:
    if role != MessageRole.ASSISTANT:
        return {}
    personal = text_of(line, "personal", 10)
    if personal not in PersonalUse.values:
        allowed = ", ".join(filter(None, PersonalUse.values))
        raise Invalid(fields={"personal": _("must be one of %s") % allowed})
    return {"personal": personal, "stays_here": _flag(line, "stays_here", False)}


def _link_answers(
    wanted: dict[Record, tuple[str, str]], messages: dict[str, Message], places: Places
) -> None:
    """Link each answer to its question, which is an earlier message of the same chat."""
    reply_targets = {
        record: (record.line["reply_to"], chat)
        for record, (_, chat) in wanted.items()
        if isinstance(record.line.get("reply_to"), str)
    }
    ids = resolve("msg", reply_targets.values(), places.user)
    questions = {pair: message_id.local for pair, message_id in ids.items() if message_id.is_here}
    keys = dict(Message.objects.filter(public_id__in=questions.values()).values_list("public_id", "pk"))
    own = resolve("msg", wanted.values(), places.user)
    linked = []
    for record, pair in reply_targets.items():
        message = messages.get(own[wanted[record]].local)
        question = keys.get(questions.get(pair, ""))
        if message is not None and question is not None and question < message.pk:
            message.reply_to_id = question
            linked.append(message)
    Message.objects.bulk_update(linked, ["reply_to"])


def _receipt(line: dict[str, Any], local: str, places: Places) -> Receipt:
    workspace = places.workspace(text_of(line, "workspace", 64))
    assert workspace is not None, "sorted before"
    receipt = Receipt(
        message_id=local,
        workspace=workspace if workspace.pk else None,
        user=_who(line, text_of(line, "user", 150), places) or places.user,
        ranking=text_of(line, "ranking", 20),
        threshold=_number(line, "threshold"),
        degraded=text_of(line, "degraded", 200),
        imported=True,
    )
    receipt.created_at = _past(line, "created_at", places) or places.now
    return receipt


def _items(line: dict[str, Any]) -> list[dict[str, Any]]:
    items = line.get("items") or []
    if not isinstance(items, list) or len(items) > ITEMS or not all(isinstance(item, dict) for item in items):
        raise Invalid(fields={"items": _("must be a list of at most %s objects") % ITEMS})
    read = []
    for item in items:
        refuse_hidden_secrets("items", item.get("content"))
        position, parts = item.get("position"), storable("score_parts", item.get("score_parts") or {})
        if not isinstance(position, int) or not 0 <= position <= SMALL or not isinstance(parts, dict):
            raise Invalid(fields={"items": _("each needs a position and score_parts")})
        read.append(
            {
                "memory": text_of(item, "memory", 64),
                "position": position,
                "score": _number(item, "score"),
                "score_parts": {str(name): _number(parts, name) for name in parts},
                "strength": strength if (strength := item.get("strength")) in Strength.values else "",
                "content": text_of(item, "content", 2000),
                "mentions": _spans(item.get("mentions")),
                "used": _flag(item, "used", False),
                "in_profile": _flag(item, "in_profile", False),
                "reason": text_of(item, "reason", 100),
                "not_relevant": _flag(item, "not_relevant", False),
            }
        )
    return read


def _spans(value: object) -> list[list[int]]:
    """Return the text ranges of a receipt's item as [start, end] pairs, or [] if any is invalid (older exports)."""
    values = value if isinstance(value, list) else []
    pairs = [pair for pair in values if isinstance(pair, list) and len(pair) == 2]
    whole = all(type(at) is int and 0 <= at <= 2000 for pair in pairs for at in pair)
    return pairs[:SPANS] if whole else []


def _store_receipts(new_receipts: list[tuple[Receipt, list[dict[str, Any]]]], places: Places) -> None:
    receipts = [receipt for receipt, _ in new_receipts]
    dates = [receipt.created_at for receipt in receipts]
    Receipt.objects.bulk_create(receipts)
    for receipt, created_at in zip(receipts, dates, strict=True):
        receipt.created_at = created_at  # bulk_create set it to now
    Receipt.objects.bulk_update(receipts, ["created_at"])
    wanted = {
        (item["memory"], into)
        for receipt, items in new_receipts
        for item in items
        for into in (receipt.workspace.public_id, places.user.public_id)
    }
    ids = resolve("mem", wanted, places.user)
    here = {memory_id.local for memory_id in ids.values() if memory_id.is_here}
    keys = dict(Memory.objects.filter(public_id__in=here).values_list("public_id", "pk"))
    rows: dict[tuple[int, int], ReceiptItem] = {}
    for receipt, items in new_receipts:
        for item in items:
            for into in (receipt.workspace.public_id, places.user.public_id):
                key = keys.get(ids[item["memory"], into].local)
                if key is not None:
                    fields = {name: value for name, value in item.items() if name != "memory"}
                    rows[receipt.pk, key] = ReceiptItem(receipt=receipt, memory_id=key, **fields)
    ReceiptItem.objects.bulk_create(rows.values())


def _who(line: dict[str, Any], name: str, places: Places) -> User | None:
    workspace = places.workspace(text_of(line, "workspace", 64))
    assert workspace is not None, "sorted before"
    return places.person(workspace)(name)


def _past(line: dict[str, Any], name: str, places: Places) -> Any:
    """Return the time in the field ``name``, or None. A time in the future becomes now."""
    moment = read_moment(name, line.get(name))
    return min(moment, places.now) if moment else None


def _flag(line: dict[str, Any], name: str, default: bool) -> bool:
    value = line.get(name, default)
    if not isinstance(value, bool):
        raise Invalid(fields={name: _("must be true or false")})
    return value


def _number(line: dict[str, Any], name: str) -> float:
    value = line.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Invalid(fields={name: _("must be a number")})
    return float(value)
