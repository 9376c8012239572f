"""Topics of a workspace (memory nodes): links to memories that name them, relations, and suggestions."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from memories.judging.duplicates import determiners
from memories.judging.duplicates.alignment import is_date
from memories.judging.secret_filter import find_secret
from memories.models import Memory, MemoryNode, NodeMemory, NodeRelation
from memories.models.memory import MemoryQuerySet
from memories.models.topics import (
    KIND_LENGTH,
    NODE_DESCRIPTION_LENGTH,
    NODE_NAME_LENGTH,
    RELATION_LENGTH,
    MemoryNodeQuerySet,
)
from memoryhub.database.queries import current_connection
from memoryhub.errors import Conflict, Invalid, NotFound, SecretRefused
from workspaces.access import require
from workspaces.actions.workspaces import clean_text
from workspaces.models import Role, User, Workspace


def fold(name: str) -> str:
    """Normalize a name for comparison: case-folded and in Unicode NFC."""
    composed = unicodedata.normalize("NFC", name)
    return unicodedata.normalize("NFC", composed.casefold())


def mentions(text: str, name: str) -> bool:
    """Return whether the text contains the name as whole words, ignoring case."""
    return re.search(whole_words(fold(name)), fold(text)) is not None


def whole_words(name: str) -> str:
    """Return a regular expression, valid in Python and Postgres, that matches the name as whole words."""
    before = r"(?<!\w)" if _has_spaces_around_words(name[0]) else ""
    after = r"(?!\w)" if _has_spaces_around_words(name[-1]) else ""
    return before + re.escape(name) + after


def link_to_named_topics(memories: Sequence[Memory]) -> None:
    """Link each memory to the topics with ``gathers_by_name`` whose name it contains. One query if there are none."""
    topics: dict[int, list[MemoryNode]] = {}
    workspaces = {memory.workspace_id for memory in memories}
    for node in MemoryNode.objects.filter(workspace__in=workspaces, gathers_by_name=True):
        topics.setdefault(node.workspace_id, []).append(node)
    links = [
        NodeMemory(node=node, memory=memory)
        for memory in memories
        for node in topics.get(memory.workspace_id, ())
        if mentions(memory.content, node.name)
    ]
    NodeMemory.objects.bulk_create(_without_unlinked(links), ignore_conflicts=True)


def link_memories_that_name(node: MemoryNode) -> None:
    """Link all memories of the workspace that contain the topic's name, including personal ones of every member."""
    rows = Memory.objects.live().filter(workspace=node.workspace_id, content__icontains=node.name)
    links = [
        NodeMemory(node=node, memory_id=pk)
        for pk, content in rows.values_list("pk", "content").iterator(chunk_size=1000)
        if mentions(content, node.name)
    ]
    NodeMemory.objects.bulk_create(_without_unlinked(links), batch_size=1000, ignore_conflicts=True)


def _without_unlinked(links: Sequence[NodeMemory]) -> list[NodeMemory]:
    """Leave out links that a person has deleted before. At most one query."""
    rows = MemoryNode.unlinked.through.objects.filter(memorynode__in={link.node_id for link in links})
    unlinked = set(rows.values_list("memorynode", "memory"))
    return [link for link in links if (link.node_id, link.memory_id) not in unlinked]


def _has_spaces_around_words(sign: str) -> bool:
    """Return whether the character belongs to a script that is written with spaces between words."""
    name = unicodedata.name(sign, "")
    return not name.startswith(("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR"))


DEEPEST = 3
MOST_NEIGHBOURS = 200
MOST_RELATIONS = 500  # returned with neighbours
# Breadth-first search, in which a node occurs once for each depth at which it is reached. The inner limit bounds the
# work. It is far above MOST_NEIGHBOURS, so that nodes are missing only where there are too many to show.
NEIGHBOURS = """
    WITH RECURSIVE reach (node_id, depth) AS (
        SELECT %(start)s::bigint, 0
        UNION
        SELECT beyond.node_id, reach.depth + 1
        FROM reach CROSS JOIN LATERAL (
            SELECT target_id AS node_id FROM memories_noderelation WHERE source_id = reach.node_id
            UNION ALL
            SELECT source_id FROM memories_noderelation WHERE target_id = reach.node_id
        ) AS beyond
        WHERE reach.depth < %(depth)s
    )
    SELECT node_id, min(depth) AS depth FROM (SELECT * FROM reach LIMIT 20000) AS walked
    GROUP BY node_id HAVING min(depth) > 0 ORDER BY depth, node_id LIMIT %(limit)s
"""


@dataclass(frozen=True)
class Neighbourhood:
    """The nodes around a start node, nearest first, and the relations among them. ``truncated``: there are more."""

    nodes: list[MemoryNode]
    relations: list[NodeRelation]
    truncated: bool


def get_node(
    user: User, public_id: str, *, workspace: Workspace | None = None, need: Role = Role.VIEWER
) -> MemoryNode:
    """Return a node. Raises NotFound if the user may not see it here, Forbidden if their role is below ``need``."""
    nodes = MemoryNode.objects.visible_to(user).select_related("workspace")
    if workspace is not None:
        nodes = nodes.filter(workspace=workspace)
    node = nodes.filter(public_id=public_id).first()
    if node is None:
        raise NotFound(_("This topic does not exist, or you do not have access to it."))
    require(node.role, need)
    return node


def nodes_in(workspace: Workspace, user: User) -> MemoryNodeQuerySet:
    return MemoryNode.objects.visible_to(user).filter(workspace=workspace)


def linkable_memories(workspace: Workspace, user: User) -> MemoryQuerySet:
    """Return the live memories of the workspace that the user may see, and all personal ones of the user."""
    return Memory.objects.visible_to(user).live().filter(Q(workspace=workspace) | Q(owner=user))


def get_linkable_memory(node: MemoryNode, user: User, public_id: str) -> Memory:
    memory = linkable_memories(node.workspace, user).filter(public_id=public_id).first()
    if memory is None:
        raise NotFound(_("This memory does not exist, or you do not have access to it."))
    return memory


def named(workspace: Workspace, name: str, user: User) -> MemoryNode:
    """Return the node with this name, ignoring case. Raises Invalid if the user sees none."""
    nodes = nodes_in(workspace, user).filter(folded=fold(" ".join(name.split())))
    node = nodes.order_by(F("owner").asc(nulls_first=True)).first()
    if node is None:
        raise Invalid(fields={"other": _("There is no topic with this name here yet.")})
    return node


def gathered(node: MemoryNode, user: User, *, after: str = "") -> MemoryQuerySet:
    """Return the node's memories that the user may see, newest first, from after the one with the id ``after``."""
    linkable = linkable_memories(node.workspace, user)
    memories = linkable.filter(nodes=node)
    if not after:
        return memories
    last = linkable.filter(public_id=after).first()
    return memories.none() if last is None else memories.after(last.created_at, last.pk)


def with_counts(nodes: MemoryNodeQuerySet, workspace: Workspace, user: User) -> MemoryNodeQuerySet:
    """Annotate nodes with ``memory_count`` and ``relation_count``. Only what the user may see is counted."""
    links = NodeMemory.objects.filter(memory__in=linkable_memories(workspace, user))
    relation_count = number_of_relations(workspace, user)
    return nodes.annotate(memory_count=number_of(links, "node"), relation_count=relation_count)


def number_of_relations(workspace: Workspace, user: User) -> CombinedExpression:
    """Return an expression that counts a node's relations with nodes that the user may see."""
    seen = nodes_in(workspace, user)
    between = NodeRelation.objects.filter(source__in=seen, target__in=seen)
    return number_of(between, "source") + number_of(between, "target")


def number_of(rows: QuerySet[Any], field: str) -> Coalesce:
    mine = rows.filter(**{field: OuterRef("pk")}).order_by().values(field)
    return Coalesce(Subquery(mine.annotate(number=Count("*")).values("number")), 0)


def counted(node: MemoryNode, user: User) -> MemoryNode:
    """Load the node again, annotated as by ``with_counts``."""
    rows = MemoryNode.objects.filter(pk=node.pk).select_related("workspace")
    return with_counts(rows, node.workspace, user).get()


def create_node(
    workspace: Workspace,
    *,
    name: str,
    kind: str = "",
    description: str = "",
    gathers_by_name: bool = False,
    by: User,
    now: datetime,
) -> MemoryNode:
    """Create a node. Raises Conflict if the workspace has a node with this name, ignoring case.

    The node is private to ``by`` if all its memories are personal or ``by`` is the only member of their own workspace,
    because its name can reveal what the memories say.
    """
    values = _cleaned(name=name, kind=kind, description=description)
    _refuse_split_secret(values["name"], values["description"])
    if nodes_in(workspace, by).filter(folded=fold(values["name"])).exists():
        raise _name_is_taken()
    is_alone = workspace.default_of_id == by.pk and workspace.memberships.count() == 1
    node = MemoryNode(
        owner=by if is_alone else None,
        workspace=workspace,
        gathers_by_name=gathers_by_name,
        created_by=by,
        created_at=now,
        updated_at=now,
        **values,
    )
    with transaction.atomic():
        _save(node)
        if gathers_by_name:
            link_memories_that_name(node)
        owners = node.memories.filter(workspace=workspace).values_list("owner", flat=True)
        if set(owners.order_by()) == {by.pk}:
            node.owner = by
            _save(node, ["owner"])
    return node


def update_node(
    node: MemoryNode,
    *,
    now: datetime,
    name: str | None = None,
    kind: str | None = None,
    description: str | None = None,
    gathers_by_name: bool | None = None,
) -> MemoryNode:
    """Change the given fields; None leaves a field unchanged. Raises Conflict if the name is taken."""
    changes = {"name": name, "kind": kind, "description": description}
    values = _cleaned(**{field: text for field, text in changes.items() if text is not None})
    for field, text in values.items():
        setattr(node, field, text)
    _refuse_split_secret(node.name, node.description)
    if gathers_by_name is not None:
        node.gathers_by_name = gathers_by_name
    node.updated_at = now
    with transaction.atomic():
        _save(node, [*values, "gathers_by_name", "updated_at"])
        if gathers_by_name:
            link_memories_that_name(node)
    return node


@transaction.atomic
def link_memory(node: MemoryNode, memory: Memory, *, now: datetime) -> bool:
    """Link a memory to the node. Return False if it was already linked. Load the memory by ``get_linkable_memory``."""
    node.unlinked.remove(memory)
    return NodeMemory.objects.get_or_create(node=node, memory=memory, defaults={"created_at": now})[1]


@transaction.atomic
def unlink_memory(node: MemoryNode, memory: Memory) -> None:
    """Unlink a memory from the node. It is not linked by its text again."""
    if NodeMemory.objects.filter(node=node, memory=memory).delete()[0]:
        node.unlinked.add(memory)


def relate(
    node: MemoryNode, target: MemoryNode, relation: str, *, now: datetime
) -> tuple[NodeRelation, bool]:
    """Create a relation, if there is none. Return it and whether it is new.

    Raises NotFound for a target in another workspace, and Invalid for the node itself.
    """
    if target.workspace_id != node.workspace_id:
        raise NotFound(_("There is no such topic in this workspace."))
    if target.pk == node.pk:
        raise Invalid(_("A topic cannot be related to itself."))
    text = _cleaned(relation=relation)["relation"]
    return NodeRelation.objects.select_related("source", "target").get_or_create(
        source=node, target=target, relation=text, defaults={"created_at": now}
    )


def unrelate(node: MemoryNode, target: MemoryNode, relation: str) -> None:
    NodeRelation.objects.filter(source=node, target=target, relation=" ".join(relation.split())).delete()


def relations_of(node: MemoryNode, user: User) -> QuerySet[NodeRelation]:
    """Return the node's relations in both directions, oldest first, without those to nodes hidden from the user."""
    seen = nodes_in(node.workspace, user)
    relations = NodeRelation.objects.filter(Q(source=node, target__in=seen) | Q(target=node, source__in=seen))
    return relations.select_related("source", "target")


def relations_among(nodes: Iterable[MemoryNode]) -> list[NodeRelation]:
    """Return the relations among these nodes, oldest first, at most MOST_RELATIONS."""
    keys = [node.pk for node in nodes]
    among = NodeRelation.objects.filter(source__in=keys, target__in=keys)
    return list(among.select_related("source", "target").order_by("pk")[:MOST_RELATIONS])


def neighbours(node: MemoryNode, user: User, *, depth: int = 1, limit: int = 50) -> Neighbourhood:
    """Return the nodes at most ``depth`` relations away (1 to DEEPEST), in either direction. Three queries."""
    limit = min(limit, MOST_NEIGHBOURS)
    bounds = {"start": node.pk, "depth": min(depth, DEEPEST), "limit": limit + 1}
    with current_connection().cursor() as cursor:
        cursor.execute(NEIGHBOURS, bounds)
        depths = dict(cursor.fetchall()[: limit + 1])
    pks = list(depths)[:limit]
    rows = with_counts(nodes_in(node.workspace, user).filter(pk__in=pks), node.workspace, user)
    nodes = sorted(rows.select_related("workspace"), key=lambda each: (depths[each.pk], each.folded))
    for each in nodes:
        each.depth = depths[each.pk]
    relations = relations_among([node, *nodes])
    return Neighbourhood(nodes, relations, len(depths) > limit or len(relations) == MOST_RELATIONS)


def _save(node: MemoryNode, fields: list[str] | None = None) -> None:
    """Save the node. Raises Conflict if the database's unique constraint refuses the name."""
    node.folded = fold(node.name)
    try:
        with transaction.atomic():
            node.save(update_fields=[*fields, "folded"] if fields else None)
    except IntegrityError as error:
        if "one_node_of_a_name" not in str(error):
            raise
        raise _name_is_taken() from None


def _name_is_taken() -> Conflict:
    return Conflict(_("Another topic in this workspace has this name."), fields={"name": _("is taken")})


LIMITS = {
    "name": (1, NODE_NAME_LENGTH),
    "kind": (0, KIND_LENGTH),
    "description": (0, NODE_DESCRIPTION_LENGTH),
    "relation": (1, RELATION_LENGTH),
}


def _cleaned(**values: str) -> dict[str, str]:
    """Strip and check texts. Raises Invalid for a wrong length or SecretRefused for a credential, naming the field."""
    cleaned = {}
    for field, text in values.items():
        text = text.replace("\r\n", "\n").strip() if field == "description" else " ".join(text.split())
        low, high = LIMITS[field]
        cleaned[field] = clean_text(field, text, low=low, high=high)
        if find_secret(text):
            raise SecretRefused(fields={field: _("looks like a credential")})
    return cleaned


def _refuse_split_secret(name: str, description: str) -> None:
    """Raise SecretRefused if name and description together form a credential."""
    if find_secret(f"{name}={description}"):
        raise SecretRefused(fields={"description": _("looks like a credential")})


MOST_READ = 2_000  # newest memories, in which names are looked for
MOST_COMPARED = 500  # topics
OFFERED = 12
LEAST_MEMORIES = 2
LONGEST_NAME = 3  # words
_WORD = re.compile(r"[^\W_][\w'\u2019-]*")
_NO_NAME = re.compile(r".$|I['\u2019]")
_SENTENCE_END = re.compile(r"[.!?:;…]\s*[\"'\u201d\u2019)]*\s*$|\n\s*$")


def suggest_topics(workspace: Workspace, user: User) -> list[tuple[str, int]]:
    """Return names that occur in two or more of the newest memories and are no topics, with the number of memories.

    Names come from the model that extracted a memory, or are words with a capital letter inside a sentence. Personal
    memories are only included in the user's own workspace, and only if nobody else is a member.
    """
    rows = linkable_memories(workspace, user)
    if workspace.default_of_id != user.pk or workspace.memberships.count() > 1:
        rows = rows.filter(owner=None)
    newest = rows.order_by("-created_at").values_list("content", "source_details__about")[:MOST_READ]
    by_model = {
        text: [name for name in about if _is_name(name) and mentions(text, name)]
        for text, about in newest
        if isinstance(about, list)
    }
    texts = [text for text, _about in newest]
    topic_names = set(nodes_in(workspace, user).values_list("folded", flat=True))
    common = {word for text in texts for word in _common_words(text)}
    inside = {word for text in texts for word, begins, _between in _words(text) if not begins} - common
    numbers = Counter(name for text in texts for name in _names(text, inside).union(by_model.get(text, ())))
    suggestions = [
        (name, number)
        for name, number in sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
        if number >= LEAST_MEMORIES and fold(name) not in topic_names
    ]
    return _without_parts(suggestions)[:OFFERED]


def _is_name(name: object) -> bool:
    """Return whether a value of ``source_details`` can be the name of a topic. Imports may contain any value."""
    return isinstance(name, str) and 0 < len(name.strip()) == len(name) <= NODE_NAME_LENGTH


def suggest_merges(workspace: Workspace, user: User) -> list[tuple[MemoryNode, MemoryNode]]:
    """Return pairs of unrelated topics, not marked as different, whose names look alike, the longer name first."""
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
    """Move the links and relations of ``node`` to ``into``, and delete ``node``.

    ``into`` gathers memories by name if one of them did. Raises Invalid unless the two are different topics of one
    workspace.
    """
    if node.pk == into.pk or node.workspace_id != into.workspace_id:
        raise Invalid(fields={"into": _("Choose another topic of this workspace.")})
    memories = NodeMemory.objects.filter(node=node).values_list("memory", flat=True)
    links = [NodeMemory(node=into, memory_id=memory, created_at=now) for memory in memories]
    NodeMemory.objects.bulk_create(links, ignore_conflicts=True)
    relations = NodeRelation.objects.filter(Q(source=node) | Q(target=node))
    relations = relations.exclude(Q(source=into) | Q(target=into))
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
    """Yield each word, whether it begins a sentence, and the text before it since the previous word."""
    end = 0
    for match in _WORD.finditer(text):
        between = text[end : match.start()]
        word = match[0].removesuffix("'s").removesuffix("\N{RIGHT SINGLE QUOTATION MARK}s")
        yield word, end == 0 or bool(_SENTENCE_END.search(between)), between
        end = match.end()


def _common_words(text: str) -> Iterator[str]:
    """Yield the words in lower case or after a German article, which are no names, as written and capitalized."""
    before = ""
    for word, _begins, _between in _words(text):
        if not word[0].isupper() or before in determiners():
            yield word
            yield word.capitalize()
        before = word.casefold()


def _names(text: str, names_inside: set[str]) -> set[str]:
    """Return the names in the text, made of words in ``names_inside``. Adjacent words form one name ("Maria Lopez")."""
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


def _without_parts(suggestions: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Remove names that occur only as part of a longer name."""
    return [
        (name, number)
        for name, number in suggestions
        if not any(
            number <= more and f" {name} " in f" {other} " and other != name for other, more in suggestions
        )
    ]


def _look_alike(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    in_words = set(short.split()) <= set(long.split())
    begins = len(short) >= 4 and long.startswith(short) and len(short) / len(long) > 0.6
    return in_words or begins
