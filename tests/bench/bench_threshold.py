# ruff: noqa: E402  Django has to be set up before its models are imported
"""Measure both curves behind the injection threshold: evidence that passes it, and small talk that does not.

    python -m tests.bench.bench_threshold FILE [FILE …] [--sizes 5,25,100] [--svg curves.svg]

FILEs as for bench_recall. Every conversation is stored whole, and random parts of it in workspaces of their own; recall
and the split into used and left out are the product's. For each base threshold t it prints the share of found evidence
(relevant memories among the first RECALL_LIMIT) that is used, and the share of small-talk messages for which the block
stays empty. With the bundled embedder t is the least relevance; with another a workspace of n memories is judged at
injection_threshold(t, n), as a turn does.
"""

import argparse
import os
import random
import secrets
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")

import django

django.setup()

from django.conf import settings
from django.db import transaction
from django.test import override_settings

from memories.evaluation import Conversation, cleaned_drafts, read_conversations
from memories.recalling.ranking import injection_threshold
from memories.recalling.recall import Recall, recall, split_recall
from memories.writing.gate import save_embedded
from memoryhub.database.startup import running_database
from tests.bench.small_talk import SMALL_TALK
from tests.factories import HERE
from workspaces.access import default_workspace
from workspaces.index.embedding import embed_texts
from workspaces.models import Membership, Role, User, Workspace

THRESHOLDS = [round(0.30 + 0.05 * step, 2) for step in range(11)]
LEFT_OUT = 5  # a turn recalls a few more than it uses, for the receipt
Groups = dict[str, dict[str, list["Asked"]]]
# The recall, the keys of the evidence, the number of memories in the workspace
Asked = tuple[Recall, set[int], int]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--sizes", default="5,25,100,200", help="random parts of so many memories")
    parser.add_argument("--svg", type=Path, help="also draw the curves of the whole workspaces")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    conversations = [found for file in options.files for found in read_conversations(file)]
    asked: Groups = defaultdict(lambda: defaultdict(list))
    with running_database(), scratch_user() as user:
        for number, conversation in enumerate(conversations):
            show(f"conversation {number + 1} of {len(conversations)}")
            measure(conversation, sizes, user, asked["evidence"], asked["small talk"])
    show("")
    columns = ["whole", *(str(size) for size in sizes)]
    for name, found in asked.items():
        is_evidence = name.endswith("evidence")
        what = "found that is used" if is_evidence else "with an empty block"
        report(f"{name} {what}", columns, found, used_share if is_evidence else empty_share)
    if options.svg:
        evidence, talk = (
            [each for name, found in asked.items() if kind(name) for each in found["whole"]]
            for kind in (lambda name: name.endswith("evidence"), lambda name: "talk" in name)
        )
        options.svg.write_text(
            drawn(
                [used_share(evidence, threshold) for threshold in THRESHOLDS],
                [empty_share(talk, threshold) for threshold in THRESHOLDS],
            )
        )


def measure(
    conversation: Conversation,
    sizes: list[int],
    user: User,
    evidence: dict[str, list[Asked]],
    talk: dict[str, list[Asked]],
) -> None:
    """Ask every question of the whole conversation and of one random part of each size."""
    chance = random.Random(conversation.name)  # the same parts in every run
    now = max(datetime.fromisoformat(memory["at"]) for memory in conversation.memories) + timedelta(days=1)
    drafts = list(cleaned_drafts(conversation, default_workspace(user), user))
    texts = [(draft.content, draft.source_excerpt) for _, _, draft in drafts]
    vectors = embed_texts(texts, [HERE] * len(texts))
    assert vectors is not None, "there is no embedder"
    for name, size in [("whole", len(drafts)), *((str(size), size) for size in sizes)]:
        if size > len(drafts):
            continue
        workspace = Workspace.objects.create(name="bench_threshold")
        Membership.objects.create(workspace=workspace, user=user, role=Role.OWNER)
        keys: dict[str, int] = {}
        with transaction.atomic():
            for position in sorted(chance.sample(range(len(drafts)), size)):
                known_as, said_at, draft = drafts[position]
                placed = replace(draft, workspace=workspace)
                saved = save_embedded(placed, vectors[position], by=user, now=said_at, dedupe="create")
                keys[known_as] = saved.memory.pk
        limit = settings.RECALL_LIMIT + LEFT_OUT
        for query in conversation.queries:
            relevant = {keys[known_as] for known_as in query["relevant"] if known_as in keys}
            if relevant:
                found = recall(query["text"], workspace, user, limit=limit, now=now, policy=HERE)
                evidence[name].append((found, relevant, size))
        for message in SMALL_TALK:
            found = recall(message, workspace, user, limit=limit, now=now, policy=HERE)
            talk[name].append((found, set(), size))
        workspace.delete()


def used(asked: Asked, base: float) -> list[tuple[int, bool]]:
    """Return the recalled memories' keys, each with whether a turn with this base threshold would use it."""
    found, _, size = asked
    threshold = injection_threshold(base, size)
    with override_settings(
        RECALL_THRESHOLD=base
    ):  # with the bundled embedder the threshold is the least relevance, for any number of memories
        verdicts = split_recall(found, threshold=threshold, limit=settings.RECALL_LIMIT)
    return [(item.memory.pk, is_used) for item, (is_used, _) in zip(found.items, verdicts, strict=True)]


def used_share(questions: list[Asked], base: float) -> float:
    """Return the share of the relevant memories among the first RECALL_LIMIT that are used."""
    verdicts = [
        is_used
        for asked in questions
        for key, is_used in used(asked, base)[: settings.RECALL_LIMIT]
        if key in asked[1]
    ]
    return sum(verdicts) / max(1, len(verdicts))


def empty_share(messages: list[Asked], base: float) -> float:
    empty = [not any(is_used for _, is_used in used(asked, base)) for asked in messages]
    return sum(empty) / max(1, len(empty))


def report(
    title: str,
    columns: list[str],
    asked: dict[str, list[Asked]],
    share: Callable[[list[Asked], float], float],
) -> None:
    print(f"\n{title}; memories in the workspace:")
    print(f"{'t':>6}" + "".join(f"{column:>8}" for column in columns))
    for threshold in sorted({*THRESHOLDS, settings.RECALL_THRESHOLD}):
        shares = "".join(f"{share(asked[column], threshold):8.3f}" for column in columns)
        print(f"{threshold:6.2f}{shares}{'  <- default' if threshold == settings.RECALL_THRESHOLD else ''}")


def drawn(evidence: list[float], empty: list[float]) -> str:
    """Return both curves as an SVG of 480 by 260."""
    left, top, width, height = 40, 12, 420, 200
    first, last = THRESHOLDS[0], THRESHOLDS[-1]

    def at(threshold: float, share: float) -> str:
        return f"{left + width * (threshold - first) / (last - first):.1f},{top + height * (1 - share):.1f}"

    def curve(shares: list[float], colour: str) -> str:
        points = " ".join(at(threshold, share) for threshold, share in zip(THRESHOLDS, shares, strict=True))
        return f'<polyline fill="none" stroke="{colour}" stroke-width="2.5" points="{points}"/>'

    def label(x: float, y: float, text: str, colour: str = "#777", anchor: str = "middle") -> str:
        return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}">{text}</text>'

    x = left + width * (settings.RECALL_THRESHOLD - first) / (last - first)
    lines = [
        f'<path stroke="#999" stroke-width=".5" d="M{left} {top + height * part}h{width}"/>'
        for part in (0, 0.1, 0.5, 1)
    ]
    lines += [
        label(left - 6, top + height * (1 - share) + 4, f"{share:.0%}", anchor="end")
        for share in (0, 0.5, 0.9, 1)
    ]
    lines += [
        label(left + width * (t - first) / (last - first), top + height + 16, f"{t:.2f}")
        for t in THRESHOLDS[::2]
    ]
    lines += [f'<path stroke="#999" stroke-dasharray="4 3" d="M{x:.1f} {top}v{height}"/>']
    lines += [curve(evidence, "#2f7ed8"), curve(empty, "#d9822b")]
    lines += [label(left, 250, "evidence that is used", "#2f7ed8", "start")]
    lines += [label(left + width, 250, "small talk left alone", "#d9822b", "end")]
    start = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 260" font-family="sans-serif" font-size="11">'
    return "\n".join([start, *lines, "</svg>", ""])


def show(what: str) -> None:
    print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)


@contextmanager
def scratch_user() -> Iterator[User]:
    """Yield a temporary user, deleted afterwards with every workspace."""
    user = User.objects.create_user(f"bench-{secrets.token_hex(6)}")
    try:
        yield user
    finally:
        Workspace.objects.filter(memberships__user=user).delete()
        user.delete()


if __name__ == "__main__":
    main()
