"""A person's profile in a workspace: memories about them, and those that its members share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Q, prefetch_related_objects
from django.utils.translation import gettext as _

from memories.access import get_memory
from memories.judging.extraction.speaker import names_the_user
from memories.models import Memory
from memories.models.memory import MemoryQuerySet
from memories.recalling.loading import load_memories
from memories.recalling.overview import HERE, LINES, SELF, of_everything
from memoryhub.database.replicas import read
from memoryhub.errors import NotFound
from workspaces.data_policy import DataPolicy
from workspaces.index.hybrid_search import SearchArea, area_within
from workspaces.models import User, Workspace

# Matches the beginning of a statement that people make about themselves.
FIRST_PERSON = re.compile(
    r"(?:i|my|ich|mein\w*|je|mon|ma|mes|yo|mis?|eu|meus?|minhas?|أنا)\b|j['\u2019]|我(?!们)", re.IGNORECASE
)
LOADED = 5 * LINES  # memories to load per overview, because some are hidden or not about the person


@dataclass(frozen=True)
class Profile:
    """A person's profile in a workspace. It is computed on every read."""

    you: list[Memory]  # about the person
    here: list[Memory]  # shared ones, about the workspace


def profile_of(workspace: Workspace, user: User, *, policy: DataPolicy, now: datetime) -> Profile:
    """Return the user's profile in a workspace. Ten queries. Raises NotFound if the user is not a member."""
    where = area_within(policy, workspace, user)
    return read(user.pk, lambda: _profile(workspace, user, where, now))


def hidden_lines(workspace: Workspace, user: User, now: datetime) -> MemoryQuerySet:
    there = Q(workspace=workspace) | Q(owner=user)
    return Memory.objects.visible_to(user).live(now).filter(there, hidden_from_profile_of=user).listed()


def hide_line(public_id: str, workspace: Workspace, user: User, *, hidden: bool) -> Memory:
    """Hide a memory of this workspace or the user from the user's profile, or show it again. Raises NotFound."""
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
    about = [memories[key] for key in you if key in memories and _is_about_user(memories[key], user)]
    others = [memories[key] for key in here if key in memories and memories[key] not in about]
    profile = Profile(_by_category(about[:LINES]), _by_category(others[:LINES]))
    prefetch_related_objects([*profile.you, *profile.here], "workspace")
    return profile


def _is_about_user(memory: Memory, user: User) -> bool:
    """Return whether a memory is the user's personal one, names them, or is their statement about themselves."""
    text = memory.content
    if memory.owner_id == user.pk or user.shown_name.lower() in text.lower():
        return True
    says_so = memory.category == "preference" or FIRST_PERSON.match(text) or names_the_user(text)
    return memory.written_by == user and bool(says_so)


def _by_category(memories: Iterable[Memory]) -> list[Memory]:
    """Group memories by category, in the order of first occurrence."""
    memories = list(memories)
    categories = list(dict.fromkeys(memory.category for memory in memories))
    return sorted(memories, key=lambda memory: categories.index(memory.category))
