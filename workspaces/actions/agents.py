"""Assistants of a workspace: finding, creating, changing and archiving. Editors change them, every member uses them."""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from memoryhub.errors import Conflict, Invalid, NotFound
from workspaces.access import lock_as_editor, require
from workspaces.actions.workspaces import clean_text
from workspaces.audit import Verb, Word, record
from workspaces.models import Agent, Role, User, Workspace

NAME_LENGTH = 80
DESCRIPTION_LENGTH = 300
INSTRUCTIONS_LENGTH = 4000
MOST_IN_USE = 50  # per workspace; one menu and one page list them all


def get_agent(
    user: User, public_id: str, *, workspace: Workspace | None = None, need: Role = Role.VIEWER
) -> Agent:
    """Return the assistant with the person's ``role`` in its workspace.

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
    """Return the assistant for a new chat or memory. Raises Invalid if it is archived or of another workspace.

    ``or_archived``: accept an archived one, for reading existing chats and memories.
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
    """Create an assistant. Editors only. Raises Conflict if the name is taken or the workspace has ``MOST_IN_USE``."""
    values = _cleaned(name=name, description=description, instructions=instructions)
    with transaction.atomic():
        lock_as_editor(workspace, by)
        _refuse_too_many(workspace)
        agent = Agent(workspace=workspace, created_by=by, created_at=now, updated_at=now, **values)
        return _noted(_saved(agent), by, "made")


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
    given = {"name": name, "description": description, "instructions": instructions}
    values = _cleaned(**{field: text for field, text in given.items() if text is not None})
    with transaction.atomic():
        lock_as_editor(agent.workspace, by)
        for field, text in values.items():
            setattr(agent, field, text)
        agent.updated_at = now
        return _noted(_saved(agent, [*values, "updated_at"]), by, "changed", fields=[*values])


def archive_agent(agent: Agent, *, by: User, now: datetime) -> Agent:
    """Archive an assistant, so that no new chat can choose it. Its chats and memories stay. Idempotent."""
    with transaction.atomic():
        lock_as_editor(agent.workspace, by)
        if agent.archived_at is None:
            agent.archived_at = agent.updated_at = now
            agent.save(update_fields=["archived_at", "updated_at"])
            _noted(agent, by, "archived")
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
        return _noted(_saved(agent, ["archived_at", "updated_at"]), by, "restored")


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


def _noted(agent: Agent, by: User, change: str, **details: list[Word]) -> Agent:
    """Record the change in the audit log, because instructions affect the answers to all members."""
    words: dict[str, Word | list[Word]] = {"change": change, **details}
    record(Verb.AGENT_CHANGED, by=by, workspace=agent.workspace, target=agent.public_id, details=words)
    return agent


def _cleaned(**values: str) -> dict[str, str]:
    limits = {
        "name": (1, NAME_LENGTH),
        "description": (0, DESCRIPTION_LENGTH),
        "instructions": (0, INSTRUCTIONS_LENGTH),
    }
    cleaned = {}
    for field, text in values.items():
        text = text.replace("\r\n", "\n").strip() if field == "instructions" else " ".join(text.split())
        low, high = limits[field]
        cleaned[field] = clean_text(field, text, low=low, high=high)
    return cleaned
