"""What is kept about a person beside what an export holds: their account, what they set, and what was counted of them.

Every table that names a person stands in ``ABOUT`` or, with a reason, in ``LEFT_OUT``: a test holds that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db.models import BinaryField, Q, QuerySet

from workspaces.models import AuditEvent, User, Workspace

ROWS = 500
# By the column that names them, and where it lies: what is in a workspace goes to its members alone.
ABOUT = {
    "workspaces.User": ("pk", ""),
    "account.EmailAddress": ("user", ""),
    "socialaccount.SocialAccount": ("user", ""),
    "mfa.Authenticator": ("user", ""),
    "workspaces.SignIn": ("user", ""),
    "workspaces.Membership": ("user", ""),
    "workspaces.GroupGrant": ("user", ""),
    "workspaces.DirectoryGroup_members": ("user", ""),
    "workspaces.ApiKey": ("user", ""),
    "workspaces.Connection": ("owner", ""),
    "workspaces.Webhook": ("created_by", "workspace"),
    "workspaces.Invitation": ("created_by", "workspace"),
    "workspaces.ModelUse": ("user", ""),
    "workspaces.Budget": ("user", ""),
    "memories.MemoryNode": ("created_by", "workspace"),
    "memories.Memory_hidden_from_profile_of": ("user", "memory__workspace"),
    "memories.Clearing": ("by", "workspace"),
    "memories.RecallQuestion": ("owner", "workspace"),
    "chat.SavedPrompt": ("owner", ""),
    "chat.AnswerRating": ("user", "message__chat__workspace"),
    "chat.ChatMark": ("user", "chat__workspace"),
    "chat.ChatTag": ("user", "chat__workspace"),
    "chat.ShareLink": ("made_by", "chat__workspace"),
    "chat.Import": ("user", ""),
    "chat.Run": ("user", "workspace"),
    "chat.RunTemplate": ("user", "workspace"),
    "chat.PassingTurn": ("user", "workspace"),
}
_EXPORTED = "in the export"
_OF_OTHERS = "shared, in the export or on its page; who made it is one of its fields"
_NOTE = "a count or a note that goes by itself within days"
LEFT_OUT = {
    **dict.fromkeys(
        (
            "workspaces.PersonPicture",
            "workspaces.Workspace",
            "workspaces.Agent",
            "workspaces.Document",
            "workspaces.DocumentPassage",
            "workspaces.DocumentVersion",
            "workspaces.Artifact",
            "workspaces.ArtifactVersion",
            "memories.Memory",
            "memories.Revision",
            "memories.Receipt",
            "chat.Chat",
            "chat.Message",
            "chat.Chat_personal_of",
        ),
        _EXPORTED,
    ),
    "memories.Asset": "in the copy, with its file",
    **dict.fromkeys(("memories.KeptAsIs", "chat.RunStep", "workspaces.Retention"), _OF_OTHERS),
    "chat.ShortTermMemory": "made of their chats anew as they chat",
    "workspaces.Spent": _NOTE,
    "workspaces.DoneRequest": _NOTE,
    "workspaces.OAuthCode": _NOTE,
    "memories.Extraction": _NOTE,
    "admin.LogEntry": "in the audit log as well",
    "workspaces.User_groups": "rights of staff, which the audit log tells of",
    "workspaces.User_user_permissions": "rights of staff, which the audit log tells of",
}
# What opens something, or stands for it, and keys of rows.
HIDDEN = {
    "password",
    "looks",
    "data",
    "session_key",
    "key_hash",
    "token_hash",
    "beginning",
    "sealed_key",
    "sealed_secret",
    "sealed_before",
    "file_name",
    "fingerprint",
    "conversation",
    "folded",
    "used_by",
    "message_ids",
    "memories_used",
    "places",
    "states",
    "board",
}
_EVENT = ("at", "verb", "by_id", "workspace_id", "target", "details", "network", "request_id")


def kept_about(person: User) -> Iterator[dict[str, Any]]:
    """Row by row, each with its ``table``; a few hundred at a time. No keys of rows, no secrets."""
    for label, (column, place) in ABOUT.items():
        model = apps.get_model(label)
        names = _fields(model)
        rows = model._default_manager.filter(**{column: person.pk})
        if place:
            rows = rows.filter(**{f"{place}__in": Workspace.objects.visible_to(person).values("pk")})
            rows = rows.visible_to(person) if hasattr(rows, "visible_to") else rows
        yield from _each(label, rows, names)
    done = AuditEvent.objects.filter(Q(by_id=person.public_id) | Q(target=person.public_id))
    yield from _each("workspaces.AuditEvent", done, {name: name for name in _EVENT})


def _each(table: str, rows: QuerySet[Any], names: dict[str, str]) -> Iterator[dict[str, Any]]:
    last = 0
    while found := _after(rows, last, list(names)):
        for _pk, *values in found:
            yield {"table": table} | dict(zip(names.values(), values, strict=True))
        last = found[-1][0]


def _after(rows: QuerySet[Any], last: int, names: list[str]) -> list[tuple[Any, ...]]:
    return list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", *names)[:ROWS])


def _fields(model: Any) -> dict[str, str]:
    """By the path to each, its name: of what it refers to the public id, if that has one."""
    found = {}
    for field in model._meta.concrete_fields:
        if field.name in HIDDEN or field.primary_key or isinstance(field, BinaryField):
            continue
        if not field.is_relation:
            found[field.name] = field.name
        elif any(each.name == "public_id" for each in field.related_model._meta.concrete_fields):
            found[f"{field.name}__public_id"] = field.name
    return found
