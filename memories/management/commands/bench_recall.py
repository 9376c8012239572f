"""Measure recall on your own questions: ``manage.py bench_recall FILE``; docs/recall.md explains the file."""

import argparse
import secrets
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memories.evaluation import (
    Conversation,
    Line,
    Malformed,
    Score,
    evaluate,
    load_conversation,
    milliseconds,
    read_conversations,
)
from memories.recalling.ranking import RANKINGS, SIGNALS, WEIGHTS
from memoryhub.database.startup import running_database
from memoryhub.management import Progress
from workspaces.access import default_workspace
from workspaces.models import Membership, Role, User, Workspace

BASELINES = ("bm25", "vector")
EXCERPT = "excerpt"  # not a weight: the memories are stored again without their excerpts
SWITCHES = (*SIGNALS, EXCERPT)


def _ks(text: str) -> list[int]:
    try:
        ks = sorted({int(part) for part in text.split(",")})
    except ValueError:
        ks = []
    if not ks or ks[0] < 1 or ks[-1] > 50:
        raise argparse.ArgumentTypeError("whole numbers from 1 to 50, separated by commas, such as 5,10")
    return ks


class Command(BaseCommand):
    help = "Load conversations into a scratch workspace, ask their questions, and print how well recall answers them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", type=Path, help="JSON lines, one conversation a line; docs/recall.md has the format"
        )
        parser.add_argument(
            "--ranking", action="append", choices=RANKINGS, help="hybrid unless given; repeatable"
        )
        parser.add_argument("--k", type=_ks, default=[5, 10], help="where to cut, separated by commas (5,10)")
        parser.add_argument(
            "--without",
            action="append",
            default=[],
            choices=(*SWITCHES, "each"),
            metavar="SIGNAL",
            help=f"add a line of hybrid without one signal, or without each in turn: {', '.join(SWITCHES)}; repeatable",
        )

    def handle(
        self,
        *args: Any,
        file: Path,
        ranking: list[str] | None,
        k: list[int],
        without: list[str],
        **options: Any,
    ) -> None:
        lines = [Line(name, name) for name in dict.fromkeys([*BASELINES, *(ranking or ["hybrid"])])]
        off = SWITCHES if "each" in without else dict.fromkeys(without)
        lines += [_without(signal) for signal in off]
        scores = {line: Score() for line in lines}
        try:
            conversations = list(read_conversations(file))
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
        except Malformed as error:
            raise CommandError(f"{file}: {error}") from None
        if not conversations:
            raise CommandError(f"{file} has no conversations.")
        self.progress = Progress(self.stderr)
        with running_database():
            embedding = self._measure(conversations, k[-1], scores)
        self._print(scores, k, conversations, embedding)

    def _measure(
        self, conversations: list[Conversation], depth: int, scores: dict[Line, Score]
    ) -> list[float]:
        # A temporary user with workspaces, deleted afterwards even if the benchmark fails.
        user = User.objects.create_user(f"bench-{secrets.token_hex(6)}")
        embedding = []
        try:
            default_workspace(user)
            for number, conversation in enumerate(conversations, 1):
                label = f"conversation {number} of {len(conversations)}"
                for excerpts in (True, False):
                    line_scores = {line: score for line, score in scores.items() if line.excerpts == excerpts}
                    if line_scores:
                        embedding += self._run(
                            label, conversation, user, depth, line_scores, excerpts=excerpts
                        )
        finally:
            Workspace.objects.filter(memberships__user=user).delete()
            user.delete()
        return embedding

    def _run(
        self,
        label: str,
        conversation: Conversation,
        user: User,
        depth: int,
        scores: dict[Line, Score],
        *,
        excerpts: bool,
    ) -> list[float]:
        workspace = Workspace.objects.create(name=f"bench_recall {conversation.name}"[:200])
        Membership.objects.create(workspace=workspace, user=user, role=Role.OWNER)
        stored = _counter(self.progress, f"{label}: stored", len(conversation.memories))
        ids = load_conversation(conversation, workspace, user, stored, excerpts=excerpts)
        if refused := len(conversation.memories) - len(ids):
            self.progress.end()
            self.stderr.write(f"{label}: the gate refused {refused} memories; they cannot be found.")
        answered = _counter(self.progress, f"{label}: asked", len(conversation.queries))
        embedding = evaluate(conversation, ids, workspace, user, scores, depth, answered)
        workspace.delete()
        return embedding

    def _print(
        self,
        scores: dict[Line, Score],
        ks: list[int],
        conversations: list[Conversation],
        embedding: list[float],
    ) -> None:
        memories = sum(len(conversation.memories) for conversation in conversations)
        queries = sum(len(conversation.queries) for conversation in conversations)
        self.progress.end()
        self.stdout.write(f"{len(conversations)} conversations, {memories} memories, {queries} questions")
        cuts = [f"{measure}@{k}" for measure in ("hit", "recall") for k in ks]
        heads = "".join(f"{head:>11}" for head in (*cuts, "MRR", "p50 ms", "p95 ms"))
        self.stdout.write(f"{'ranking':22}{heads}")
        for line, score in scores.items():
            quality = [*(score.hit(k) for k in ks), *(score.recall(k) for k in ks), score.mrr()]
            speed = [milliseconds(score.seconds, 0.5), milliseconds(score.seconds, 0.95)]
            row = [*(f"{value:.3f}" for value in quality), *(f"{value:.1f}" for value in speed)]
            self.stdout.write(f"{line.name:22}" + "".join(f"{cell:>11}" for cell in row))
        self.stdout.write(
            f"Times leave out embedding the question: p50 {milliseconds(embedding, 0.5):.1f} ms, "
            f"p95 {milliseconds(embedding, 0.95):.1f} ms."
        )


def _without(signal: str) -> Line:
    name = f"hybrid without {signal}"
    if signal == EXCERPT:
        return Line(name, "hybrid", excerpts=False)
    return Line(name, "hybrid", WEIGHTS.without(signal))


def _counter(progress: Progress, what: str, total: int) -> Callable[[], None]:
    numbers = count(1)
    return lambda: progress.show(f"{what} {next(numbers)} of {total}")
