"""Suggestions of the Topics page: recurring names as new topics, and pairs of topics to merge."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from memories.judging.duplicates.alignment import is_date
from memories.judging.duplicates.roles import determiners
from memories.models import MemoryNode, NodeMemory, NodeRelation
from memories.models.node import NODE_NAME_LENGTH
from memories.nodes.linking import fold, mentions
from memories.nodes.nodes import memories_in_sight, nodes_in
from memoryhub.errors import Invalid
from workspaces.models import User, Workspace

MOST_READ = 2_000  # newest memories, in which names are looked for
MOST_COMPARED = 500  # topics
OFFERED = 12
LEAST_MEMORIES = 2
LONGEST_NAME = 3  # words
_WORD = re.compile(r"[^\W_][\w'\u2019-]*")
_NO_NAME = re.compile(r".$|I['\u2019]")
_SENTENCE_END = re.compile(r"[.!?:;…]\s*[\"'\u201d\u2019)]*\s*$|\n\s*$")


@dataclass(frozen=True)
class NamedInMemories:
    """A name and the number of memories that contain it."""

    name: str
    number: int


def suggest_topics(workspace: Workspace, user: User) -> list[NamedInMemories]:
    """Return names that at least two of the newest memories contain and that are no topic yet, most frequent first.

    A name is one that the model gave when it extracted the memory, or a word with a capital inside a sentence.

    Personal memories are read only in the person's own workspace while nobody else is a member.
    """
    rows = memories_in_sight(workspace, user)
    if workspace.default_of_id != user.pk or workspace.memberships.count() > 1:
        rows = rows.filter(owner=None)
    newest = rows.order_by("-created_at").values_list("content", "source_details__about")[:MOST_READ]
    by_model = {
        text: [name for name in about if _is_name(name) and mentions(text, name)]
        for text, about in newest
        if isinstance(about, list)
    }
    texts = [text for text, _about in newest]
    taken = set(nodes_in(workspace, user).values_list("folded", flat=True))
    common = {word for text in texts for word in _common_words(text)}
    inside = {word for text in texts for word, begins, _between in _words(text) if not begins} - common
    numbers = Counter(name for text in texts for name in _names(text, inside).union(by_model.get(text, ())))
    found = [
        NamedInMemories(name, number)
        for name, number in sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
        if number >= LEAST_MEMORIES and fold(name) not in taken
    ]
    return _without_parts(found)[:OFFERED]


def _is_name(name: object) -> bool:
    """Return whether a value of ``source_details``, which an import may bring, can be the name of a topic."""
    return isinstance(name, str) and 0 < len(name.strip()) == len(name) <= NODE_NAME_LENGTH


def suggest_merges(workspace: Workspace, user: User) -> list[tuple[MemoryNode, MemoryNode]]:
    """Return pairs of topics whose names look like names of one thing ("Maria", "Maria Lopez"), the longer first.

    Topics that are related to each other or that a person marked as different are not paired.
    """
    nodes = list(nodes_in(workspace, user)[:MOST_COMPARED])
    relations = NodeRelation.objects.filter(source__workspace=workspace).values_list("source", "target")
    differing = MemoryNode.objects.filter(workspace=workspace, differs_from__isnull=False)
    related = {frozenset(pair) for pair in [*relations, *differing.values_list("pk", "differs_from")]}
    return [
        (b, a) if len(a.name) < len(b.name) else (a, b)
        for a, b in combinations(nodes, 2)
        if _look_alike(a.folded, b.folded) and frozenset((a.pk, b.pk)) not in related
    ][:OFFERED]


@transaction.atomic
def merge_topics(node: MemoryNode, into: MemoryNode, *, now: datetime) -> None:
    """Move the links and relations of ``node`` to ``into`` and delete ``node``. ``into`` gathers by name if either did.

    Raises Invalid unless the two are different topics of one workspace.
    """
    if node.pk == into.pk or node.workspace_id != into.workspace_id:
        raise Invalid(fields={"into": _("Choose another topic of this workspace.")})
    memories = NodeMemory.objects.filter(node=node).values_list("memory", flat=True)
    NodeMemory.objects.bulk_create(
        [NodeMemory(node=into, memory_id=memory, created_at=now) for memory in memories],
        ignore_conflicts=True,
    )
    relations = NodeRelation.objects.filter(Q(source=node) | Q(target=node)).exclude(
        Q(source=into) | Q(target=into)
    )
    moved = [
        NodeRelation(
            source_id=into.pk if each.source_id == node.pk else each.source_id,
            target_id=into.pk if each.target_id == node.pk else each.target_id,
            relation=each.relation,
            created_at=each.created_at,
        )
        for each in relations
    ]
    NodeRelation.objects.bulk_create(moved, ignore_conflicts=True)
    into.unlinked.add(*node.unlinked.exclude(nodes=into))
    into.differs_from.add(*node.differs_from.exclude(pk=into.pk))
    if node.owner_id in (None, into.owner_id):  # a private description is not shown to others
        into.description = into.description or node.description
    into.gathers_by_name |= node.gathers_by_name
    into.updated_at = now
    into.save(update_fields=["description", "gathers_by_name", "updated_at"])
    node.delete()


def _words(text: str) -> Iterator[tuple[str, bool, str]]:
    """Yield each word, whether it begins a sentence, and the text between it and the word before."""
    end = 0
    for match in _WORD.finditer(text):
        between = text[end : match.start()]
        yield (
            match[0].removesuffix("'s").removesuffix("\N{RIGHT SINGLE QUOTATION MARK}s"),
            end == 0 or bool(_SENTENCE_END.search(between)),
            between,
        )
        end = match.end()


def _common_words(text: str) -> Iterator[str]:
    """Yield the words that are not names: those in lower case or after a German article."""
    before = ""
    for word, _begins, _between in _words(text):
        if not word[0].isupper() or before in determiners():
            yield word
            yield word.capitalize()
        before = word.casefold()


def _names(text: str, names_inside: set[str]) -> set[str]:
    """Return the words of ``names_inside`` in the text. Adjacent ones form one name ("Maria Lopez")."""
    names: set[str] = set()
    run: list[str] = []
    for word, begins, between in _words(text):
        is_name = word in names_inside and _NO_NAME.match(word) is None and not is_date(word.casefold())
        if run and (not is_name or begins or between.strip()):
            names.add(" ".join(run[:LONGEST_NAME]))
            run = []
        if is_name:
            run.append(word)
    return names | ({" ".join(run[:LONGEST_NAME])} if run else set())


def _without_parts(found: Sequence[NamedInMemories]) -> list[NamedInMemories]:
    """Remove names that occur only as part of a longer name."""
    return [
        each
        for each in found
        if not any(
            other.number >= each.number and f" {each.name} " in f" {other.name} " and other != each
            for other in found
        )
    ]


def _look_alike(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    in_words = set(short.split()) <= set(long.split())
    begins = len(short) >= 4 and long.startswith(short) and len(short) / len(long) > 0.6
    return in_words or begins
