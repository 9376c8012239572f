"""Lines of an import (JSON objects with a type), and the mapping of their ids and users to local ones.

A row keeps its id if that id is free here. Otherwise its new id is derived from the old one. It is the same each time,
so that importing a file twice stores its rows once.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from django.db.models import F, QuerySet, Value
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from chat.models import Chat, Message
from chat.models.imports import Import, Outcome, Searched
from memories.models import Memory
from memories.writing.drafts import UNSTORABLE
from memories.writing.export_lines import read_moment
from memories.writing.tombstones import WasForgotten
from memoryhub.errors import Conflict, DomainError, Forbidden, Invalid, NotFound, SecretRefused
from memoryhub.ids import ALPHABET, LENGTH
from memoryhub.localization import grouped
from memoryhub.stored_messages import kept
from workspaces.access import default_workspace, get_workspace
from workspaces.actions.workspaces import create_agent, create_workspace
from workspaces.models import Agent, Artifact, Membership, Role, User, Workspace
from workspaces.quotas import QuotaReached

SETTINGS = ("private_short_term", "reviews_proposals")  # boolean fields of a workspace
MAX_LINE = 16 * 2**20  # bytes; the line of a memory includes its revisions
ROWS = 500
ROWS_BYTES = 4 * 2**20  # a chunk ends once it has this many bytes
FORGOTTEN = kept("it was forgotten for good here")
EMPTY = kept("the entry is empty")
NO_MESSAGES = kept("the chat has no messages")
NO_STATEMENT = kept("a heading or a number is not a statement")
UNKNOWN = kept("entries of this kind are not known here")
GONE = b'{"type":"forgotten"}'  # replaces the line of a forgotten memory; shorter than every such line
KINDS = {"workspace", "agent", "chat", "message", "memory", "document", "artifact", "receipt"}


def skipped_line(reason: str, *, of: str = "other") -> dict[str, Any]:
    """Return a line for an entry of another program's export that the preview refuses, as of the kind ``of``."""
    return {"type": "left_out", "of": of, "reason": reason}


@dataclass(eq=False)
class Record:
    """A line of an import, and its outcome: new, duplicate, updated or refused."""

    number: int
    offset: int
    kind: str = ""
    line: dict[str, Any] = field(default_factory=dict)
    outcome: str = Outcome.NEW
    reason: str = ""
    duplicate_of: str = ""
    became: str = ""  # the id of the row that the line created or changed
    refusal: DomainError | None = None  # the error, if a rule of the gate refused the line
    same_as: int | None = None
    fingerprint: int | None = None

    @property
    def is_new(self) -> bool:
        return self.outcome in (Outcome.NEW, Outcome.UPDATE)

    @property
    def was_forgotten(self) -> bool:
        return isinstance(self.refusal, WasForgotten)

    def refuse(self, reason: str, refusal: DomainError | None = None) -> None:
        self.outcome, self.reason, self.refusal = Outcome.REFUSED, reason[:200], refusal

    def refuse_for(self, error: DomainError) -> None:
        """Refuse the line because of this error. The reason never contains the text, such as a secret."""
        if isinstance(error, SecretRefused):
            self.refuse(f"{error.code}: {', '.join(error.fields)}", error)
        else:
            self.refuse(error.message, error)

    @contextmanager
    def refused_on_error(self) -> Iterator[None]:
        """Refuse the line on a DomainError, except QuotaReached: the import can be resumed once there is space."""
        try:
            yield
        except QuotaReached:
            raise
        except DomainError as error:
            self.refuse_for(error)

    def leave_out(self) -> None:
        """Refuse a line of ``skipped_line`` for the reason in it."""
        of, reason = self.line.get("of"), self.line.get("reason")
        self.kind = of if of in KINDS else ""
        self.refuse(reason if reason in (EMPTY, NO_MESSAGES, NO_STATEMENT, UNKNOWN) else UNKNOWN)

    def is_known(self, of: str, reason: str = "") -> None:
        self.outcome, self.duplicate_of, self.reason = Outcome.DUPLICATE, of, reason


@dataclass(frozen=True)
class Chunk:
    records: list[Record]
    offset: int  # start of the next chunk
    number: int  # lines up to that offset
    ends: bool
    read_bytes: int = 0  # bytes read of the upload, if the lines are created from it
    read_count: int = 0  # complete entries read of the upload
    read_lines: int = 0  # lines already created from the next entry
    searched: Searched | None = None  # totals up to the end of this chunk


def read_chunk(file: BinaryIO, *, offset: int, number: int) -> Chunk:
    """Return the next lines from the byte ``offset``; ``number`` is the count of lines before it."""
    file.seek(offset)
    records: list[Record] = []
    begin = offset
    while len(records) < ROWS and offset - begin < ROWS_BYTES:
        raw = file.readline(MAX_LINE + 1)
        if not raw:
            return Chunk(records, offset, number, ends=True)
        number += 1
        record = Record(number, offset)
        offset += len(raw)
        if len(raw) > MAX_LINE:
            while not raw.endswith(b"\n") and (raw := file.readline(MAX_LINE)):
                offset += len(raw)
            record.refuse(kept("the line is too long"))
        elif raw.isspace():
            continue
        else:
            _understand(record, raw)
        records.append(record)
    return Chunk(records, offset, number, ends=False)


def forget_lines(path: Path, offsets: Collection[int]) -> None:
    """Overwrite the lines at these offsets with GONE. The offsets of other lines do not change."""
    if not offsets:
        return
    with path.open("r+b") as file:
        for offset in offsets:
            file.seek(offset)
            overwrite_line(file, offset, file.readline(), GONE)
        sync(file)


def overwrite_line(file: BinaryIO, offset: int, raw: bytes, new: bytes) -> None:
    """Overwrite the line ``raw`` at ``offset`` with ``new``, padded with spaces to the same length.

    The newline at the end of ``raw`` is kept. ``new`` must have none, and must not be longer than ``raw`` without it.
    """
    end = b"\n" if raw.endswith(b"\n") else b""
    file.seek(offset)
    file.write(new.ljust(len(raw) - len(end)) + end)


def sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def parse_line(raw: bytes) -> dict[str, Any]:
    """Return the JSON object of one line. Raises Invalid if the line is not a JSON object."""
    try:
        value = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Invalid(_("This line is not a JSON object."))
    return value


def _understand(record: Record, raw: bytes) -> None:
    try:
        line = parse_line(raw)
    except Invalid as error:
        record.refuse(error.message)
        return
    kind = line.get("type")
    record.line = line
    if kind in KINDS:
        record.kind = str(kind)
    elif kind == "forgotten":
        record.kind = "memory"
        record.refuse(FORGOTTEN, WasForgotten())
    elif kind == "left_out":
        record.leave_out()
    elif record.offset == 0 and kind == "memoryhub":
        record.kind = "header"
    else:
        record.refuse(kept("lines of this type are not known here"))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


@dataclass(frozen=True)
class Id:
    local: str
    is_here: bool  # already stored, by an earlier import or because the file was exported here


def derived_id(prefix: str, *of: str) -> str:
    """Return a public id with this prefix, derived from the strings ``of`` by a hash."""
    number = int.from_bytes(
        hashlib.sha256("\0".join((prefix, *of)).encode("utf-8", "replace")).digest(), "big"
    )
    letters = []
    for _index in range(LENGTH):
        number, at = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[at])
    return f"{prefix}_{''.join(letters)}"


def _visible(prefix: str, user: User) -> QuerySet[Any]:
    """Return the rows with ids of this prefix that the importer may see: workspaces they may write to, all assistants.

    ``parent`` is the id of the row's workspace, chat or owner, which decides about assistants.
    """
    match prefix:
        case "ws":
            memberships = Membership.objects.filter(user=user).exclude(role=Role.VIEWER)
            return Workspace.objects.filter(memberships__in=memberships).annotate(
                parent=Value(user.public_id)
            )
        case "agent":
            return Agent.objects.annotate(parent=F("workspace__public_id"))
        case "chat":
            return Chat.objects.visible_to(user).annotate(parent=F("workspace__public_id"))
        case "msg":
            chats = Chat.objects.visible_to(user)
            return Message.objects.filter(chat__in=chats).annotate(parent=F("chat__public_id"))
        case "mem":
            parent = Coalesce("owner__public_id", "workspace__public_id")
            return Memory.objects.visible_to(user).annotate(parent=parent)
        case "art":
            return Artifact.objects.visible_to(user).annotate(parent=F("workspace__public_id"))
    raise ValueError(prefix)


def parents_of(prefix: str, public_ids: Collection[str], user: User) -> dict[str, str]:
    """Map the ids that exist here to the id of their parent (see ``_visible``), or to "" if ``user`` may not see it."""
    visible = _visible(prefix, user)
    rows = visible.model._default_manager.filter(public_id__in=public_ids)
    existing = dict.fromkeys(rows.values_list("public_id", flat=True), "")
    return existing | dict(visible.filter(public_id__in=existing).values_list("public_id", "parent"))


def resolve(prefix: str, wanted: Iterable[tuple[str, str]], user: User) -> dict[tuple[str, str], Id]:
    """Return the local id for each pair in ``wanted``: (id in the file, id of its workspace, chat or owner).

    An id from the file is kept if it is free here, or if its row here belongs to the same parent and ``user`` may see
    it. Otherwise the local id is derived from the pair.
    """
    pairs = set(wanted)
    own = {pair: derived_id(prefix, pair[1], pair[0]) for pair in pairs}
    usable = re.compile(rf"{prefix}_[A-Za-z0-9]{{{LENGTH}}}")
    valid_pairs = {pair for pair in pairs if usable.fullmatch(pair[0])}
    parents = parents_of(prefix, {pair[0] for pair in valid_pairs} | set(own.values()), user)
    ids = {}
    for pair in pairs:
        file_id, into = pair
        if parents.get(own[pair]) == into:
            ids[pair] = Id(own[pair], is_here=True)
        elif pair in valid_pairs and file_id not in parents:
            ids[pair] = Id(file_id, is_here=False)
        elif pair in valid_pairs and parents[file_id] == into:
            ids[pair] = Id(file_id, is_here=True)
        else:
            ids[pair] = Id(own[pair], is_here=False)
    return ids


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

    def workspace(self, file_id: str) -> Workspace | None:
        """Return the local workspace for an id in the file, with the importer's ``role``, or None if it is unknown.

        If one workspace was chosen for the whole import, that one is returned. A workspace that is not created yet has
        no primary key. Raises Forbidden if the importer may no longer write there.
        """
        if file_id not in self._workspaces:
            self._workspaces[file_id] = self._find(file_id)
        return self._workspaces[file_id]

    def sort(self, records: list[Record]) -> list[tuple[Record, Workspace]]:
        """Return (record, workspace) pairs for the records whose workspace is known, and refuse the others."""
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
        """Return the importer's own workspace, which stores their personal memories."""
        return default_workspace(self.user)

    def agent(self, file_id: str, workspace: Workspace) -> Agent | None:
        """Return the local assistant for an id in the file, or None. One that is not created yet has no primary key."""
        if not file_id or workspace.pk is None:
            return Agent(workspace=workspace) if file_id in self.known else None
        if file_id not in self._agents:
            agent = None
            if local := self.known.get(file_id):
                agent = Agent.objects.filter(workspace=workspace, public_id=local).first()
                if agent is None and not self.stores:
                    agent = Agent(workspace=workspace)
            self._agents[file_id] = agent
        return self._agents[file_id]

    def meet(self, names: Iterable[str]) -> None:
        """Load the users with these user names into ``people``. One query."""
        new = {name for name in names if name and not UNSTORABLE.search(name)} - set(self.people)
        named = list(User.objects.filter(username__in=new, is_active=True))
        users = {person.get_username(): person for person in named}
        self.people |= {name: users.get(name) for name in new}

    def person(self, workspace: Workspace) -> Callable[[str], User | None]:
        """Return a function that maps a user name to the user, or to None if the import may not name this author.

        An editor's import may name only the importer, an owner's all members, an administrator's all users.
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

    def _find(self, file_id: str) -> Workspace | None:
        if self.target is not None:
            return get_workspace(self.user, self.target.public_id, need=Role.EDITOR)
        if not file_id:  # the file has no workspaces
            return self.home()
        local = self.known.get(file_id)
        if local is None:
            return None
        try:
            return get_workspace(self.user, local, need=Role.EDITOR)
        except NotFound:
            if self.stores:
                why = _("You are no longer a member of a workspace that this import needs.")
                raise Forbidden(why) from None
            return Workspace(public_id=local)

    def add_workspace(self, record: Record) -> None:
        line = record.line
        file_id = text_of(line, "id", 64, least=1)
        if self.target is not None:
            record.is_known(self.target.public_id, kept("everything goes to the workspace you chose"))
            return
        if line.get("is_default") is True:
            local = self.home().public_id
            record.is_known(local, kept("your personal workspace"))
        else:
            pair = (file_id, self.user.public_id)
            workspace_id = resolve("ws", [pair], self.user)[pair]
            local = workspace_id.local
            if workspace_id.is_here:
                record.is_known(local)
            elif self.stores:
                self._make_workspace(line, local)
                record.became = local
        self._note(file_id, local)

    def _make_workspace(self, line: dict[str, Any], local: str) -> None:
        name, description = text_of(line, "name", 120, least=1), text_of(line, "description", 2000)
        workspace = create_workspace(name=name, description=description, by=self.user, public_id=local)
        created_at = min(read_moment("created_at", line.get("created_at")) or self.now, self.now)
        value = line.get("settings")
        flags = value if isinstance(value, dict) else {}
        settings = {name: flags[name] for name in SETTINGS if isinstance(flags.get(name), bool)}
        Workspace.objects.filter(pk=workspace.pk).update(created_at=created_at, **settings)

    def add_agent(self, record: Record) -> None:
        line = record.line
        workspace = self.workspace(text_of(line, "workspace", 64))
        file_id, name = text_of(line, "id", 64, least=1), text_of(line, "name", 80, least=1)
        if workspace is None:
            raise Invalid(NO_PLACE)
        pair = (file_id, workspace.public_id)
        agent_id = resolve("agent", [pair], self.user)[pair]
        same_name = workspace.pk and workspace.agents.in_use().filter(name__iexact=name).first()
        if agent_id.is_here:
            record.is_known(agent_id.local)
        elif same_name and line.get("archived_at") is None:
            record.is_known(same_name.public_id, kept("there is already an assistant with this name"))
            self._note(file_id, same_name.public_id)
            return
        elif self.stores:
            self._make_agent(line, workspace, name, agent_id.local)
            record.became = agent_id.local
        self._note(file_id, agent_id.local)

    def _make_agent(self, line: dict[str, Any], workspace: Workspace, name: str, local: str) -> None:
        texts = {
            "name": name,
            "description": text_of(line, "description", 300),
            "instructions": text_of(line, "instructions", 4000),
        }
        archived_at = read_moment("archived_at", line.get("archived_at"))
        dates = {each: read_moment(each, line.get(each)) for each in ("created_at", "updated_at")}
        try:
            agent = create_agent(workspace, **texts, by=self.user, now=self.now)
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

    def _note(self, file_id: str, local: str) -> None:
        if file_id not in self.known and len(self.known) >= MOST_PLACES:
            raise Invalid(_("A file can have at most %s workspaces and assistants.") % MOST_PLACES)
        self.known[file_id] = local
        self._workspaces.pop(file_id, None)
        self._agents.pop(file_id, None)


def text_of(line: dict[str, Any], name: str, limit: int, *, least: int = 0) -> str:
    """Return a text field of a line; a missing or null field is "". Raises Invalid for a wrong type or length."""
    value = line.get(name)
    value = "" if value is None else value
    if not isinstance(value, str) or not least <= len(value) <= limit or UNSTORABLE.search(value):
        raise Invalid(fields={name: _("must be text of %s to %s characters") % (least, grouped(limit))})
    return value
