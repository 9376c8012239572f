"""The profile: an overview of what is remembered about a person, and of a workspace.

It is computed whenever it is read, and each line is a memory. Nothing is stored twice: a line reads as its memory does,
and is gone with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Q, prefetch_related_objects
from django.utils.translation import gettext as _

from memories.access import get_memory
from memories.judging.extraction.provenance import names_the_user
from memories.models import Memory
from memories.models.memory import MemoryQuerySet
from memories.recalling.loading import load_memories
from memories.recalling.overview import LINES, of_everything
from memories.recalling.overview_kind import HERE, SELF
from memoryhub.database.replicas import read
from memoryhub.errors import NotFound
from workspaces.index.candidates import SearchArea, area_within
from workspaces.models import User, Workspace
from workspaces.policy import Reach

# How a person's own words about themselves begin.
FIRST_PERSON = re.compile(
    r"(?:i|my|ich|mein\w*|je|mon|ma|mes|yo|mis?|eu|meus?|minhas?|أنا)\b|j['\u2019]|我(?!们)", re.IGNORECASE
)
LOADED = 5 * LINES  # memories of each overview, of which some are hidden or not about the person


@dataclass(frozen=True)
class Profile:
    """``you``: about the person; ``here``: of the workspace, without anybody's personal memories. By category."""

    you: list[Memory]
    here: list[Memory]


def profile_of(workspace: Workspace, user: User, *, reach: Reach, now: datetime) -> Profile:
    """Return the lines that ``reach`` allows, without those that this person hid. NotFound for a stranger.
    Ten queries.
    """
    where = area_within(reach, workspace, user)
    return read(user.pk, lambda: _profile(workspace, user, where, now))


def hidden_lines(workspace: Workspace, user: User, now: datetime) -> MemoryQuerySet:
    """The memories that this person hid from the profile, as far as they belong to this workspace or are their own."""
    there = Q(workspace=workspace) | Q(owner=user)
    return Memory.objects.visible_to(user).live(now).filter(there, hidden_from_profile_of=user).listed()


def hide_line(public_id: str, workspace: Workspace, user: User, *, hidden: bool) -> Memory:
    """Hide a memory of this workspace, or their own, from this person's profile, or show it again. Recall still finds
    it. NotFound for any other.
    """
    memory = get_memory(user, public_id)
    if memory.owner_id is None and memory.workspace_id != workspace.pk:
        raise NotFound(_("This memory does not exist, or you do not have access to it."))
    if hidden:
        memory.hidden_from_profile_of.add(user)
    else:
        memory.hidden_from_profile_of.remove(user)
    return memory


def _profile(workspace: Workspace, user: User, where: SearchArea, now: datetime) -> Profile:
    you, _total = of_everything(SELF, workspace, user, None, where, (), now)
    here, _total = of_everything(HERE, workspace, user, None, replace(where, personal=False), (), now)
    you, here = you[:LOADED], here[:LOADED]
    model = where.active.label if where.active else ""
    memories = load_memories({*you, *here}, where.params | {"now": now}, model=model)
    hidden = Memory.hidden_from_profile_of.through.objects.filter(user=user, memory__in=memories)
    for key in hidden.values_list("memory", flat=True):
        del memories[key]
    about = [memories[key] for key in you if key in memories and _is_about(memories[key], user)]
    others = [memories[key] for key in here if key in memories and memories[key] not in about]
    profile = Profile(_by_category(about[:LINES]), _by_category(others[:LINES]))
    prefetch_related_objects([*profile.you, *profile.here], "workspace")
    return profile


def _is_about(memory: Memory, user: User) -> bool:
    """Whether it is about the person: their own alone, names them, or is what they said of themselves."""
    text = memory.content
    if memory.owner_id == user.pk or user.shown_name.lower() in text.lower():
        return True
    says_so = memory.category == "preference" or FIRST_PERSON.match(text) or names_the_user(text)
    return memory.written_by == user and bool(says_so)


def _by_category(memories: Iterable[Memory]) -> list[Memory]:
    """Sort the memories of a category beside each other, in the order of the first of each."""
    memories = list(memories)
    categories = list(dict.fromkeys(memory.category for memory in memories))
    return sorted(memories, key=lambda memory: categories.index(memory.category))
