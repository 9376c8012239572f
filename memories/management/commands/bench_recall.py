"""Measure recall on your own questions: ``manage.py bench_recall FILE``; docs/recall.md explains the file."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memories.evaluation import (
    Conversation,
    Malformed,
    Score,
    evaluate,
    load_conversation,
    read_conversations,
)
from memories.ranking import RANKINGS
from memoryhub.management.database import running_database
from workspaces.access import default_workspace
from workspaces.models import Membership, Role, User, Workspace

BASELINES = ("bm25", "vector")


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
        parser.add_argument("file", type=Path, help="JSON lines, one conversation a line")
        parser.add_argument(
            "--ranking", action="append", choices=RANKINGS, help="hybrid unless given; repeatable"
        )
        parser.add_argument("--k", type=_ks, default=[5, 10], help="where to cut, separated by commas (5,10)")

    def handle(self, *args: Any, file: Path, ranking: list[str] | None, k: list[int], **options: Any) -> None:
        rankings = [*BASELINES, *(ranking or ["hybrid"])]
        scores = {name: Score() for name in rankings}
        try:
            conversations = list(read_conversations(file))
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
        except Malformed as error:
            raise CommandError(f"{file}, {error}") from None
        with running_database():
            self._measure(conversations, k, scores)
        self._print(scores, k, conversations)

    def _measure(self, conversations: list[Conversation], k: list[int], scores: dict[str, Score]) -> None:
        # A person and workspaces of their own, gone afterwards whatever happens.
        user = User.objects.create_user(f"bench-{secrets.token_hex(6)}")
        try:
            default_workspace(user)
            for number, conversation in enumerate(conversations, 1):
                self._run(f"{number}/{len(conversations)}", conversation, user, k[-1], scores)
        finally:
            Workspace.objects.filter(memberships__user=user).delete()
            user.delete()

    def _run(
        self, label: str, conversation: Conversation, user: User, depth: int, scores: dict[str, Score]
    ) -> None:
        workspace = Workspace.objects.create(name=f"bench_recall {conversation.name}")
        Membership.objects.create(workspace=workspace, user=user, role=Role.OWNER)
        stored = _Progress(self, f"conversation {label}: stored", len(conversation.memories))
        ids = load_conversation(conversation, workspace, user, stored.step)
        for name, score in scores.items():
            asked = _Progress(self, f"conversation {label}: asked by {name}", len(conversation.queries))
            evaluate(conversation, ids, workspace, user, name, depth, score, asked.step)
        workspace.delete()

    def _print(self, scores: dict[str, Score], ks: list[int], conversations: list[Conversation]) -> None:
        memories = sum(len(conversation.memories) for conversation in conversations)
        queries = sum(len(conversation.queries) for conversation in conversations)
        self.stderr.write("\r\033[K", ending="")
        self.stdout.write(f"{len(conversations)} conversations, {memories} memories, {queries} questions")
        cuts = [f"{measure}@{k}" for measure in ("hit", "recall") for k in ks]
        self.stdout.write("".join(f"{head:>11}" for head in ("ranking", *cuts, "MRR", "p50 ms", "p95 ms")))
        for name, score in scores.items():
            quality = [*(score.hit(k) for k in ks), *(score.recall(k) for k in ks), score.mrr()]
            speed = [score.milliseconds(0.5), score.milliseconds(0.95)]
            row = [*(f"{value:.3f}" for value in quality), *(f"{value:.1f}" for value in speed)]
            self.stdout.write(f"{name:>11}" + "".join(f"{cell:>11}" for cell in row))


class _Progress:
    """One line on stderr that counts up."""

    def __init__(self, command: BaseCommand, what: str, total: int) -> None:
        self.command, self.what, self.total, self.done = command, what, total, 0

    def step(self) -> None:
        self.done += 1
        if self.done % 25 == 0 or self.done == self.total:
            self.command.stderr.write(f"\r\033[K{self.what} {self.done} of {self.total}", ending="")
            self.command.stderr.flush()
