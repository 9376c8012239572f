"""Local workspaces, assistants and users for those named in the lines of an import."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _

from chat.exchange.lines import SETTINGS, Record, resolve, taken_by_none
from chat.models.imports import Import
from memories.writing.drafts import UNSTORABLE
from memories.writing.portable import read_moment
from memoryhub.errors import Conflict, DomainError, Forbidden, Invalid, NotFound
from memoryhub.kept import kept
from memoryhub.languages import grouped
from workspaces.access import default_workspace, get_workspace
from workspaces.actions.agents import create_agent
from workspaces.actions.workspaces import create_workspace
from workspaces.models import Agent, Membership, Role, User, Workspace
from workspaces.quotas import QuotaReached

MOST_PLACES = 500  # limit of workspaces and assistants in one file
NO_PLACE = kept("its workspace is not in the file or was refused")


class Places:
    """Target workspaces, assistants and users of an import.

    ``stores``: create the missing ones; otherwise only their future ids are recorded. Permissions are checked again for
    every chunk, since memberships can end while an import runs.
    """

    def __init__(self, imported: Import, *, now: datetime, stores: bool) -> None:
        self.user, self.now, self.stores = imported.user, now, stores
        self.target = imported.workspace
        self.known: dict[str, str] = imported.places
        self.people: dict[str, User | None] = {}
        self._workspaces: dict[str, Workspace | None] = {}
        self._agents: dict[str, Agent | None] = {}
        self._members: dict[int, set[int]] = {}

    def workspace(self, given: str) -> Workspace | None:
        """Return the target of the file's workspace ``given``, with the importer's ``role``, or None if the file has
        none.

        A workspace that is not created yet has no primary key. Raises Forbidden if the importer may no longer write
        there.
        """
        if given not in self._workspaces:
            self._workspaces[given] = self._find(given)
        return self._workspaces[given]

    def sort(self, records: list[Record]) -> list[tuple[Record, Workspace]]:
        """Return the lines whose workspace is known, each with the workspace, and refuse the others."""
        names = ("author", "created_by", "imported_by", "user")
        self.meet(str(record.line.get(name) or "") for record in records for name in names)
        placed = []
        for record in records:
            try:
                workspace = self.workspace(text_of(record.line, "workspace", 64))
            except Invalid as error:
                record.refuse_for(error)
                continue
            if workspace is None:
                record.refuse(NO_PLACE)
            else:
                placed.append((record, workspace))
        return placed

    def home(self) -> Workspace:
        """Return the workspace of the importer's personal memories."""
        return default_workspace(self.user)

    def agent(self, given: str, workspace: Workspace) -> Agent | None:
        """Return the assistant for the file's id ``given``. One that is not created yet has no primary key."""
        if not given or workspace.pk is None:
            return Agent(workspace=workspace) if given in self.known else None
        if given not in self._agents:
            local = self.known.get(given)
            found = Agent.objects.filter(workspace=workspace, public_id=local).first() if local else None
            self._agents[given] = found or (None if self.stores or not local else Agent(workspace=workspace))
        return self._agents[given]

    def meet(self, names: Iterable[str]) -> None:
        """Load the users with these names in one query."""
        new = {name for name in names if name and not UNSTORABLE.search(name)} - set(self.people)
        named = list(User.objects.filter(username__in=new, is_active=True))
        found = {person.get_username(): person for person in named}
        self.people |= {name: found.get(name) for name in new}

    def person(self, workspace: Workspace) -> Callable[[str], User | None]:
        """Return a function that finds a member by name.

        An editor's import may name only the importer as author, an owner's import all members, an administrator's all
        users.
        """
        if self.user.is_superuser:
            return self.people.get
        speaks_for = {self.user.pk}
        if workspace.pk is not None and workspace.role == Role.OWNER:
            speaks_for |= self._members_of(workspace)

        def find(name: str) -> User | None:
            person = self.people.get(name)
            return person if person is not None and person.pk in speaks_for else None

        return find

    def _members_of(self, workspace: Workspace) -> set[int]:
        if workspace.pk not in self._members:
            members = Membership.objects.filter(workspace=workspace)
            self._members[workspace.pk] = set(members.values_list("user_id", flat=True))
        return self._members[workspace.pk]

    def add_workspaces(self, records: list[Record]) -> None:
        for record in records:
            try:
                self._add_workspace(record)
            except QuotaReached:
                raise  # the import stops, and can be resumed once there is space
            except DomainError as error:
                record.refuse_for(error)

    def add_agents(self, records: list[Record]) -> None:
        for record in records:
            try:
                self._add_agent(record)
            except DomainError as error:
                record.refuse_for(error)

    def _find(self, given: str) -> Workspace | None:
        if self.target is not None:
            return get_workspace(self.user, self.target.public_id, need=Role.EDITOR)
        if not given:  # the file has no workspaces
            return self.home()
        local = self.known.get(given)
        if local is None:
            return None
        try:
            return get_workspace(self.user, local, need=Role.EDITOR)
        except NotFound:
            if self.stores:
                raise Forbidden(
                    _("You are no longer a member of a workspace that this import needs.")
                ) from None
            return Workspace(public_id=local)

    def _add_workspace(self, record: Record) -> None:
        line = record.line
        given = text_of(line, "id", 64, least=1)
        if self.target is not None:
            record.is_known(self.target.public_id, kept("everything goes to the workspace you chose"))
            return
        if line.get("is_default") is True:
            local = self.home().public_id
            record.is_known(local, kept("your own workspace"))
        else:
            found = resolve("ws", [(given, self.user.public_id)], self._writable)[given, self.user.public_id]
            local = found.local
            if found.is_here:
                record.is_known(local)
            elif self.stores:
                self._make_workspace(line, local)
                record.became = local
        self._note(given, local)

    def _writable(self, ids: set[str]) -> dict[str, str]:
        """Return the existing workspaces among these ids, with the importer's id if the importer may write there, else
        "".
        """
        taken = taken_by_none(Workspace, ids)
        memberships = Membership.objects.filter(user=self.user, workspace__public_id__in=ids)
        writable = memberships.exclude(role=Role.VIEWER).values_list("workspace__public_id", flat=True)
        return taken | dict.fromkeys(writable, self.user.public_id)

    def _make_workspace(self, line: dict[str, Any], local: str) -> None:
        name, description = text_of(line, "name", 120, least=1), text_of(line, "description", 2000)
        made = create_workspace(name=name, description=description, by=self.user, public_id=local)
        created_at = min(read_moment("created_at", line.get("created_at")) or self.now, self.now)
        given = line.get("settings")
        flags = given if isinstance(given, dict) else {}
        settings = {name: flags[name] for name in SETTINGS if isinstance(flags.get(name), bool)}
        Workspace.objects.filter(pk=made.pk).update(created_at=created_at, **settings)

    def _add_agent(self, record: Record) -> None:
        line = record.line
        workspace = self.workspace(text_of(line, "workspace", 64))
        given, name = text_of(line, "id", 64, least=1), text_of(line, "name", 80, least=1)
        if workspace is None:
            raise Invalid(NO_PLACE)
        found = resolve("agent", [(given, workspace.public_id)], _agents_at)[given, workspace.public_id]
        same_name = workspace.pk and workspace.agents.in_use().filter(name__iexact=name).first()
        if found.is_here:
            record.is_known(found.local)
        elif same_name and line.get("archived_at") is None:
            record.is_known(same_name.public_id, kept("there is already an assistant with this name"))
            self._note(given, same_name.public_id)
            return
        elif self.stores:
            self._make_agent(line, workspace, name, found.local)
            record.became = found.local
        self._note(given, found.local)

    def _make_agent(self, line: dict[str, Any], workspace: Workspace, name: str, local: str) -> None:
        description, instructions = text_of(line, "description", 300), text_of(line, "instructions", 4000)
        dates = {
            each: read_moment(each, line.get(each)) for each in ("created_at", "updated_at", "archived_at")
        }
        archived_at = dates.pop("archived_at")
        try:
            agent = create_agent(
                workspace,
                name=name,
                description=description,
                instructions=instructions,
                by=self.user,
                now=self.now,
            )
        except Conflict as error:
            raise Invalid(error.message) from None
        self.meet([text_of(line, "created_by", 150)])
        made_by = self.person(workspace)(text_of(line, "created_by", 150))
        Agent.objects.filter(pk=agent.pk).update(
            public_id=local,
            created_by=made_by,
            imported=made_by not in (None, self.user) or line.get("imported") is True,
            archived_at=archived_at,
            **{each: min(moment, self.now) for each, moment in dates.items() if moment},
        )

    def _note(self, given: str, local: str) -> None:
        if given not in self.known and len(self.known) >= MOST_PLACES:
            raise Invalid(_("A file can have at most %s workspaces and assistants.") % MOST_PLACES)
        self.known[given] = local
        self._workspaces.pop(given, None)
        self._agents.pop(given, None)


def _agents_at(ids: set[str]) -> dict[str, str]:
    found = Agent.objects.filter(public_id__in=ids).annotate(at=F("workspace__public_id"))
    return taken_by_none(Agent, ids) | dict(found.values_list("public_id", "at"))


def text_of(line: dict[str, Any], name: str, limit: int, *, least: int = 0) -> str:
    """Return a text field of a line; a missing or null field is "". Raises Invalid for a wrong type or length."""
    value = line.get(name)
    value = "" if value is None else value
    if not isinstance(value, str) or not least <= len(value) <= limit or UNSTORABLE.search(value):
        raise Invalid(fields={name: _("must be text of %s to %s characters") % (least, grouped(limit))})
    return value
