"""All changes to a workspace, its members, its assistants and a person's own settings.

Editors create, change and archive assistants; every member uses them.
"""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Func, Value
from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from memoryhub.errors import Conflict, Invalid, NotFound
from memoryhub.ids import new_id
from memoryhub.stored_files import StoredFiles
from workspaces.access import get_workspace, lock_as_editor, require
from workspaces.actions.purging import Counts, counted, remove_in_other_apps
from workspaces.audit import Verb, Word, record
from workspaces.model_choice import choose_connection
from workspaces.models import Agent, Invitation, Membership, Role, User, Workspace
from workspaces.models.users import is_invisible
from workspaces.quotas import require_room
from workspaces.webhooks.hooks import queue_sending

NAME_LENGTH = 120
DESCRIPTION_LENGTH = 2000


def create_workspace(*, name: str, description: str = "", by: User, public_id: str = "") -> Workspace:
    """Create a workspace owned by ``by``, and return it with their ``role``.

    ``public_id``: its id, if it is imported. Raises Invalid for a wrong name or description, QuotaReached if the person
    has too many workspaces.
    """
    name, description = _clean_name(name), _clean_description(description)
    require_room("workspaces", by)
    with transaction.atomic():
        workspace = Workspace.objects.create(
            name=name, description=description, made_by=by, public_id=public_id or new_id("ws")
        )
        Membership.objects.create(workspace=workspace, user=by, role=Role.OWNER)
        record(Verb.WORKSPACE_MADE, by=by, workspace=workspace)
    return get_workspace(by, workspace.public_id)


def update_workspace(
    workspace: Workspace,
    *,
    by: User,
    name: str | None = None,
    description: str | None = None,
    private_short_term: bool | None = None,
    reviews_proposals: bool | None = None,
    local_only: bool | None = None,
    share_links: bool | None = None,
    connection_id: str | None = None,
) -> Workspace:
    """Change the given fields; ``None`` leaves a field unchanged. Owners only.

    ``private_short_term``: a person's other chats get short summaries of the person's private chats in this workspace.
    ``reviews_proposals``: an editor must approve what viewers and models propose. ``local_only``: texts never leave
    this machine; raises Conflict if files are stored elsewhere. ``share_links``: chats may be read by link.
    ``connection_id``: the model that answers here, empty for the default; raises Invalid if it cannot be chosen.
    """
    with transaction.atomic():
        _lock_as_owner(workspace, by)
        if (
            local_only
            and not settings.FILES_STAY_HERE
            and any(files.are_of(workspace) for files in StoredFiles.every.values())
        ):
            raise Conflict(
                _("Its documents and files are stored on another machine. Delete them for good first.")
            )
        changes: dict[str, Any] = {
            "name": None if name is None else _clean_name(name),
            "description": None if description is None else _clean_description(description),
            "private_short_term": private_short_term,
            "reviews_proposals": reviews_proposals,
            "local_only": local_only,
            "share_links": share_links,
        }
        changes = {field: value for field, value in changes.items() if value is not None}
        for field, value in changes.items():
            setattr(workspace, field, value)
        if connection_id is not None:
            workspace.connection = (
                choose_connection(workspace, connection_id, by=by) if connection_id else None
            )
            changes["connection"] = workspace.connection
        # Only the changed fields: another owner may have changed others since this row was loaded.
        workspace.save(update_fields=[*changes, "updated_at"])
        record(Verb.WORKSPACE_CHANGED, by=by, workspace=workspace, details={"fields": [*changes]})
    return workspace


def delete_workspace(workspace: Workspace, *, by: User) -> Counts:
    """Delete a workspace and its content permanently. Return the numbers of deleted rows by kind. Owners only.

    Raises Conflict for a personal workspace.
    """
    with transaction.atomic():
        _lock_as_owner(workspace, by)
        if workspace.is_default:
            raise Conflict(_("A personal workspace cannot be deleted."), code="default_workspace")
        record(Verb.WORKSPACE_DELETED, by=by, workspace=workspace)
        return remove_workspace(workspace, by=by)


def remove_workspace(workspace: Workspace, *, by: User) -> Counts:
    """Delete a workspace and its content. The caller must check that it may be deleted."""
    _lock_rows(workspace)
    gone = remove_in_other_apps(workspace_ids=[workspace.pk], by=by)
    workspace.api_keys.exclude(user=by).delete()
    return gone + counted(workspace.delete()[1])


def change_role(workspace: Workspace, *, user: User, role: str, by: User) -> Membership:
    """Change a member's role. Owners only.

    Raises Conflict for the last owner, and for the owner of a personal workspace.
    """
    if role not in Role.values:
        raise Invalid(fields={"role": _("Must be one of %s.") % ", ".join(Role.values)})
    wanted = Role(role)
    with transaction.atomic():
        _lock_as_owner(workspace, by)
        membership = _membership(workspace, user)
        if wanted != Role.OWNER:
            refuse_to_lose(workspace, membership)
        before, membership.role = membership.role, wanted
        membership.save(update_fields=["role"])
        record_member(Verb.ROLE_CHANGED, workspace, user, by, role=wanted, before=before)
        if not wanted.allows(Role(before)):
            after_lost_right(workspace, user, by, had=before)
    return membership


def remove_member(workspace: Workspace, *, user: User, by: User) -> None:
    """Remove a member. Owners may remove anyone, and everyone may leave.

    Raises Conflict for the last owner, and for the owner of a personal workspace. A person whom an owner removed can no
    longer use open invitations.
    """
    with transaction.atomic():
        if user.pk == by.pk:
            lock(workspace)
        else:
            _lock_as_owner(workspace, by)
        membership = _membership(workspace, user)
        refuse_to_lose(workspace, membership)
        membership.delete()
        verb = Verb.MEMBER_LEFT if user.pk == by.pk else Verb.MEMBER_REMOVED
        record_member(verb, workspace, user, by, role=membership.role)
        after_lost_right(workspace, user, by, had=membership.role)


def set_preference(user: User, name: str, enabled: bool) -> None:
    """Turn a preference of the person on or off: a boolean field of ``User``, such as ``memory_default``."""
    setattr(user, name, enabled)
    user.save(update_fields=[name])


def set_language(user: User, language: str) -> None:
    """Set the language of a person's pages and mails; empty for the browser's.

    Raises Invalid for an unknown language.
    """
    if language and language not in dict(settings.LANGUAGES):
        raise Invalid(fields={"language": _("is not a language of these pages")})
    user.language = language
    user.save(update_fields=["language"])


def after_lost_right(workspace: Workspace, user: User, by: User | None, *, had: str) -> None:
    """Close the workspace's open invitations to a member who was removed or got a lesser role.

    Members who made the change themselves can still use them. If ``had``, the previous role, was owner, also queues the
    webhook job, which disables webhooks of former owners.
    """
    if user != by:
        closed_to = Func(F("used_by"), Value(user.pk), function="array_append")
        still_open = Invitation.objects.filter(workspace=workspace, revoked_at=None)
        still_open.exclude(used_by__contains=[user.pk]).update(used_by=closed_to)
    if had == Role.OWNER:
        queue_sending()


def record_member(verb: Verb, workspace: Workspace, user: User, by: User | None, **roles: str) -> None:
    words = {name: str(role) for name, role in roles.items()}
    record(verb, by=by, workspace=workspace, target=user.public_id, details=words)


def lock(workspace: Workspace) -> None:
    """Lock the workspace, so that changes of members run in sequence and two owners cannot both step down.

    Raises NotFound if it was deleted.
    """
    if not Workspace.objects.select_for_update().filter(pk=workspace.pk).exists():
        raise NotFound(_("This workspace does not exist, or you do not have access to it."))


def _lock_as_owner(workspace: Workspace, by: User) -> None:
    """Lock the workspace and check under the lock that ``by`` is still an owner."""
    lock(workspace)
    require(_membership(workspace, by).role, Role.OWNER)


def _lock_rows(workspace: Workspace) -> None:
    """Lock all rows that refer to the workspace, before it is deleted.

    A concurrent write to one of them then waits and fails. Without the locks, the deletion could fail instead.
    """
    for relation in workspace._meta.related_objects:
        rows = relation.related_model._base_manager.filter(**{relation.field.name: workspace})
        list(rows.order_by("pk").select_for_update().values_list("pk", flat=True))


def _membership(workspace: Workspace, user: User) -> Membership:
    membership = Membership.objects.filter(workspace=workspace, user=user).select_related("user").first()
    if membership is None:
        raise NotFound(_("This member does not exist, or you do not have access to it."))
    return membership


def refuse_to_lose(workspace: Workspace, membership: Membership) -> None:
    if workspace.default_of_id == membership.user_id:
        raise Conflict(
            _("This is their personal workspace, so they stay its owner."), code="default_workspace"
        )
    if membership.role == Role.OWNER:
        others = Membership.objects.filter(workspace=workspace, role=Role.OWNER, user__is_active=True)
        if not others.exclude(pk=membership.pk).exists():
            raise Conflict(
                _("A workspace needs an owner. Make someone else an owner first."), code="last_owner"
            )


def _clean_name(name: str) -> str:
    return clean_text("name", " ".join(name.split()), low=1, high=NAME_LENGTH)


def _clean_description(description: str) -> str:
    return clean_text("description", description.strip(), low=0, high=DESCRIPTION_LENGTH)


def clean_text(field: str, text: str, *, low: int, high: int) -> str:
    """Return ``text`` if it is valid.

    Raises Invalid, naming the field, for a wrong length, for invisible characters alone, and for characters that cannot
    be stored.
    """
    is_blank = all(is_invisible(sign) or sign.isspace() for sign in text)
    if not low <= len(text) <= high or (low and is_blank):
        raise Invalid(
            fields={field: _("Must have %(low)s to %(high)s characters.") % {"low": low, "high": high}}
        )
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise Invalid(fields={field: _("Has characters that cannot be stored.")})
    return text


AGENT_NAME_LENGTH = 80
AGENT_DESCRIPTION_LENGTH = 300
INSTRUCTIONS_LENGTH = 4000
MOST_IN_USE = 50  # per workspace; one menu and one page list them all


def get_agent(
    user: User, public_id: str, *, workspace: Workspace | None = None, need: Role = Role.VIEWER
) -> Agent:
    """Return the assistant with this public id. Its ``role`` is the person's role in its workspace.

    Raises NotFound if the person is no member, Forbidden if their role is below ``need``.
    """
    agents = Agent.objects.visible_to(user).select_related("workspace", "created_by")
    if workspace is not None:
        agents = agents.filter(workspace=workspace)
    agent = agents.filter(public_id=public_id).first()
    if agent is None:
        raise NotFound(_("This assistant does not exist, or you do not have access to it."))
    require(agent.role, need)
    return agent


def agents_in_use(workspace: Workspace) -> list[Agent]:
    """Return the assistants that are not archived, by name, without their instructions."""
    return list(workspace.agents.in_use().order_by(Lower("name")).defer("instructions"))


def choose_agent(workspace: Workspace, public_id: str, *, or_archived: bool = False) -> Agent:
    """Return the assistant of this workspace with this public id, which a chat or memory is going to use.

    Raises Invalid if there is none, or if it is archived and ``or_archived`` is False.
    """
    agent = Agent.objects.filter(workspace=workspace, public_id=public_id).first()
    if agent is None:
        raise Invalid(
            _("This assistant does not exist in this workspace."),
            fields={"agent_id": _("is not an assistant of this workspace")},
        )
    if agent.is_archived and not or_archived:
        raise Invalid(
            _("“%s” is archived. Restore the assistant, or choose another.") % agent,
            fields={"agent_id": _("is archived")},
        )
    return agent


def create_agent(
    workspace: Workspace, *, name: str, description: str = "", instructions: str = "", by: User, now: datetime
) -> Agent:
    """Create an assistant. Editors only.

    Raises Conflict if the name is taken or the workspace has ``MOST_IN_USE`` assistants.
    """
    values = _cleaned(name=name, description=description, instructions=instructions)
    with transaction.atomic():
        lock_as_editor(workspace, by)
        _refuse_too_many(workspace)
        agent = Agent(workspace=workspace, created_by=by, created_at=now, updated_at=now, **values)
        return _audit(_saved(agent), by, "made")


def update_agent(
    agent: Agent,
    *,
    by: User,
    now: datetime,
    name: str | None = None,
    description: str | None = None,
    instructions: str | None = None,
) -> Agent:
    """Change the given fields; ``None`` leaves a field unchanged. New instructions apply from the next answer on.

    Raises Conflict if the name is taken.
    """
    changes = {"name": name, "description": description, "instructions": instructions}
    values = _cleaned(**{field: text for field, text in changes.items() if text is not None})
    with transaction.atomic():
        lock_as_editor(agent.workspace, by)
        for field, text in values.items():
            setattr(agent, field, text)
        agent.updated_at = now
        return _audit(_saved(agent, [*values, "updated_at"]), by, "changed", fields=[*values])


def archive_agent(agent: Agent, *, by: User, now: datetime) -> Agent:
    """Archive an assistant, so that no new chat can choose it. Its chats and memories stay. Idempotent."""
    with transaction.atomic():
        lock_as_editor(agent.workspace, by)
        if agent.archived_at is None:
            agent.archived_at = agent.updated_at = now
            agent.save(update_fields=["archived_at", "updated_at"])
            _audit(agent, by, "archived")
    return agent


def restore_agent(agent: Agent, *, by: User, now: datetime) -> Agent:
    """Undo ``archive_agent``.

    Idempotent. Raises Conflict if its name is taken now or the workspace has too many assistants.
    """
    with transaction.atomic():
        lock_as_editor(agent.workspace, by)
        if agent.archived_at is None:
            return agent
        _refuse_too_many(agent.workspace)
        agent.archived_at, agent.updated_at = None, now
        return _audit(_saved(agent, ["archived_at", "updated_at"]), by, "restored")


def _refuse_too_many(workspace: Workspace) -> None:
    if workspace.agents.in_use().count() >= MOST_IN_USE:
        raise Conflict(_("A workspace can have at most %s assistants. Archive one first.") % MOST_IN_USE)


def _saved(agent: Agent, fields: list[str] | None = None) -> Agent:
    """Save the assistant. Raises Conflict if another one in the workspace has its name."""
    try:
        with transaction.atomic():
            agent.save(update_fields=fields)
    except IntegrityError:
        raise Conflict(
            _("Another assistant in this workspace has this name."), fields={"name": _("is taken")}
        ) from None
    return agent


def _audit(agent: Agent, by: User, change: str, **details: list[Word]) -> Agent:
    """Record the change of an assistant in the audit log, because instructions affect the answers to all members."""
    words: dict[str, Word | list[Word]] = {"change": change, **details}
    record(Verb.AGENT_CHANGED, by=by, workspace=agent.workspace, target=agent.public_id, details=words)
    return agent


def _cleaned(**values: str) -> dict[str, str]:
    limits = {
        "name": (1, AGENT_NAME_LENGTH),
        "description": (0, AGENT_DESCRIPTION_LENGTH),
        "instructions": (0, INSTRUCTIONS_LENGTH),
    }
    cleaned = {}
    for field, text in values.items():
        text = text.replace("\r\n", "\n").strip() if field == "instructions" else " ".join(text.split())
        low, high = limits[field]
        cleaned[field] = clean_text(field, text, low=low, high=high)
    return cleaned
