# ruff: noqa: E402  Django has to be set up before its models are imported
"""Measure precision and recall of the memories that a turn and a search choose, per kind of message.

    python -m tests.bench.score_workspaces FILE [--list]

FILE holds a workspace a line, ``{"name", "memories": [{"id", "text"}], "queries": [{"text", "relevant", "kind"}]}``.
``relevant`` has the ids of the memories that should be put before a model, and no others; files for bench_recall, whose
messages have no kind, are read as well. Each workspace is stored
through the product's own writer. A turn chooses through ``find_for_prompt``, a search through ``search_workspace``.

P is the share of the chosen memories that are relevant, R the share of the relevant ones that are chosen, both summed
over messages; "exact" counts messages for which exactly the relevant memories are chosen, "silent" those for which
none is. Messages without a relevant memory count in the total's P. ``overview`` is left out of the total: how much of
a workspace belongs in an overview is a matter of degree. ``--list`` prints each message whose choice is not exact.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")

import django

django.setup()

from django.utils import timezone

from chat.prompting.context import find_for_prompt
from memories.evaluation import Conversation, load_conversation
from memories.models import Memory
from memories.recalling.workspace_search import search_workspace
from memoryhub.database.startup import running_database
from tests.bench.bench_threshold import scratch_user
from tests.factories import HERE
from workspaces.models import Membership, Role, User, Workspace

ROOM = 100_000  # tokens, so that the model's context is never the limit
APART = "overview"


@dataclass(frozen=True)
class Choice:
    """A message with the relevant and the chosen memories, by the ids of the file."""

    kind: str
    text: str
    relevant: frozenset[str]
    chosen: tuple[str, ...]
    seconds: float

    @property
    def is_exact(self) -> bool:
        return self.relevant == set(self.chosen)


@dataclass(frozen=True)
class Figures:
    precision: float
    recall: float
    exact: int
    silent: int
    messages: int

    @classmethod
    def of(cls, choices: list[Choice]) -> Figures:
        right = sum(len(choice.relevant & set(choice.chosen)) for choice in choices)
        return cls(
            precision=right / max(1, sum(len(choice.chosen) for choice in choices)),
            recall=right / max(1, sum(len(choice.relevant) for choice in choices)),
            exact=sum(choice.is_exact for choice in choices),
            silent=sum(not choice.chosen for choice in choices),
            messages=len(choices),
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--list", action="store_true", help="print each message whose choice is not exact")
    options = parser.parse_args()
    choices: dict[str, list[Choice]] = defaultdict(list)
    with running_database(), scratch_user() as user, options.file.open(encoding="utf-8") as lines:
        for line in filter(str.strip, lines):
            workspace = json.loads(line)
            for path, choice in choose(workspace, user, now=timezone.now()):
                choices[path].append(choice)
                if options.list and not choice.is_exact:
                    print_choice(
                        path, choice, {memory["id"]: memory["text"] for memory in workspace["memories"]}
                    )
    for path, made in choices.items():
        print_table(path, made)


def choose(given: dict[str, Any], user: User, *, now: datetime) -> Iterator[tuple[str, Choice]]:
    """Store one workspace of the file, run its messages through a turn and a search, and delete it."""
    workspace = Workspace.objects.create(name="score_workspaces")
    Membership.objects.create(workspace=workspace, user=user, role=Role.OWNER)
    memories = [{"at": now.isoformat(), **memory} for memory in given["memories"]]
    conversation = Conversation(given["name"], memories, given["queries"])
    keys = load_conversation(conversation, workspace, user, lambda: None, excerpts=False)
    if missing := {memory["id"] for memory in memories} - set(keys.values()):
        print(f"{given['name']}: not stored: {', '.join(sorted(missing))}", file=sys.stderr)
    stored = Memory.objects.filter(pk__in=keys).values_list("pk", "public_id")
    ids = {public_id: keys[pk] for pk, public_id in stored}
    for query in given["queries"]:
        text, relevant, kind = query["text"], frozenset(query["relevant"]), query.get("kind") or "question"
        began = time.perf_counter()
        found = find_for_prompt(text, workspace, user, agent=None, room=ROOM, policy=HERE, now=now)
        chosen = [item.memory.public_id for item in found.used]
        yield "turns", _choice(kind, text, relevant, chosen, ids, began)
        began = time.perf_counter()
        searched = search_workspace(text, workspace, user, types=["memory"], now=now, policy=HERE)
        yield "search", _choice(kind, text, relevant, [each.id for each in searched], ids, began)
    workspace.delete()


def _choice(
    kind: str, text: str, relevant: frozenset[str], chosen: list[str], ids: dict[str, str], began: float
) -> Choice:
    return Choice(kind, text, relevant, tuple(ids[each] for each in chosen), time.perf_counter() - began)


def print_choice(path: str, choice: Choice, texts: dict[str, str]) -> None:
    print(f"\n{path}, {choice.kind}: {choice.text}")
    for known_as in dict.fromkeys([*choice.chosen, *sorted(choice.relevant)]):
        right, chosen = known_as in choice.relevant, known_as in choice.chosen
        mark = "right " if right and chosen else "missed" if right else "wrong "
        print(f"  {mark} {texts[known_as]}")


def print_table(path: str, choices: list[Choice]) -> None:
    """Print the figures per kind, and together without overviews and per answerable or unanswerable message."""
    kinds: dict[str, list[Choice]] = defaultdict(list)
    for choice in choices:
        kinds[choice.kind].append(choice)
    counted = [choice for choice in choices if choice.kind != APART]
    rows = [
        *sorted(kinds.items()),
        ("with relevant ones", [choice for choice in counted if choice.relevant]),
        ("without", [choice for choice in counted if not choice.relevant]),
        (f"all but {APART}", counted),
    ]
    milliseconds = 1000 * statistics.median(choice.seconds for choice in choices)
    print(f"\n{path} (p50 {milliseconds:.0f} ms){'P':>20}{'R':>8}{'exact':>8}{'silent':>8}{'messages':>10}")
    for name, made in rows:
        figures = Figures.of(made)
        print(
            f"{name:<35}{figures.precision:8.3f}{figures.recall:8.3f}"
            f"{figures.exact:8}{figures.silent:8}{figures.messages:10}"
        )


if __name__ == "__main__":
    main()
