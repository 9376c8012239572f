"""Measure search of documents on your own texts.

    python -m tests.bench.command bench_documents FILE

docs/recall.md has the format of the file.
"""

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from memoryhub.database.startup import running_database
from memoryhub.management import Progress
from workspaces.access import default_workspace
from workspaces.actions.workspaces import create_workspace
from workspaces.data_policy import DataPolicy
from workspaces.documents import documents, reading_jobs
from workspaces.documents.search import DOCUMENTS, FoundPassage, find_passages
from workspaces.index.embedding import embed_query
from workspaces.index.hybrid_search import area_within, bm25, find_candidates
from workspaces.index.reembedding import embed_passages
from workspaces.index.scores import CANDIDATES, FLOOR
from workspaces.models import Document, DocumentPassage, User, Workspace

RETURNED = 4000  # characters, in which answers are looked for
LIMIT = RETURNED // 20  # passages


def by_words(query: str, workspace: Workspace, user: User) -> list[FoundPassage]:
    """Search by words alone."""
    where = area_within(DataPolicy.here(workspace), workspace, user)
    return best(bm25(DOCUMENTS, query, where.params, CANDIDATES))


def by_vector(query: str, workspace: Workspace, user: User) -> list[FoundPassage]:
    """Search by the vector of the query alone, without that of its gist."""
    where = area_within(DataPolicy.here(workspace), workspace, user)
    embedded = embed_query([query], where.active, local_only=where.local_only)
    assert embedded is not None
    model, [vector] = embedded
    candidates = find_candidates(DOCUMENTS, query, (model, vector), where, CANDIDATES)
    return best({each.ref: each.cosine for each in candidates if each.cosine is not None})


def best(scores: dict[int, float]) -> list[FoundPassage]:
    refs = sorted(scores, key=lambda ref: (scores[ref], -ref), reverse=True)[:LIMIT]
    passages = DocumentPassage.objects.in_bulk(refs)
    return [FoundPassage(passages[ref], scores[ref]) for ref in refs]


def by_both(query: str, workspace: Workspace, user: User, *, floor: float = 0.0) -> list[FoundPassage]:
    policy = DataPolicy.here(workspace)
    return find_passages(query, workspace, user, limit=LIMIT, policy=policy, floor=floor)


# The search of each column.
ARMS: dict[str, Callable[[str, Workspace, User], list[FoundPassage]]] = {
    "words": by_words,
    "vector": by_vector,
    "hybrid": by_both,
    "search": partial(by_both, floor=FLOOR),
}


@dataclass
class Score:
    """Number of characters in the expected answers, and how many of them were returned."""

    wanted: int = 0
    found: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.found / max(1, self.wanted)


class Command(BaseCommand):
    help = "Bring documents into scratch workspaces, ask their questions, and print how much of the answers comes back."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file",
            type=Path,
            help='JSON lines: {"name", "text", "queries": [{"text", "answers": [{"start", "end"}]}]}',
        )

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            texts = [json.loads(line) for line in file.read_text().split("\n") if line.strip()]
        except (OSError, ValueError) as error:
            raise CommandError(f"{file} cannot be read: {error}") from None
        self.progress = Progress(self.stderr)
        scores: dict[str, dict[str, Score]] = {}
        with running_database():
            user = User.objects.create_user(f"bench-{secrets.token_hex(6)}")
            try:
                default_workspace(user)
                for text in texts:
                    scores[text["name"]] = self._measure(text, user)
            finally:
                Workspace.objects.filter(memberships__user=user).delete()
                user.delete()
        self._print(scores)

    def _measure(self, text: dict[str, Any], user: User) -> dict[str, Score]:
        workspace = create_workspace(name=f"bench_documents {text['name']}"[:100], by=user)
        now, began = timezone.now(), time.perf_counter()
        document = documents.add_document(
            workspace, name=f"{text['name']}.txt", content=[text["text"].encode()], by=user, now=now
        ).document
        reading_jobs.read(document.pk, now=now)
        read = time.perf_counter() - began
        embed_passages(DOCUMENTS, list(document.passages.values_list("pk", flat=True)))
        document.refresh_from_db()
        self.progress.end()
        self.stdout.write(
            f"{text['name']}: {document.characters:,} characters in {document.passage_count} passages, read in "
            f"{read:.1f} s, embedded after {time.perf_counter() - began:.1f} s"
        )
        places = _places(document, text["text"])
        scores = {arm: Score() for arm in ARMS}
        for number, query in enumerate(text["queries"], 1):
            self.progress.show(f"{text['name']}: asked {number} of {len(text['queries'])}")
            for name, score in scores.items():
                began = time.perf_counter()
                passages = ARMS[name](query["text"], workspace, user)
                score.seconds.append(time.perf_counter() - began)
                returned = _returned(passages, places)
                for answer in query["answers"]:
                    positions = set(range(answer["start"], answer["end"]))
                    score.wanted += len(positions)
                    score.found += len(positions & returned)
        return scores

    def _print(self, scores: dict[str, dict[str, Score]]) -> None:
        self.progress.end()
        self.stdout.write(f"share of the answers' characters in the first {RETURNED:,} characters returned")
        self.stdout.write(f"{'':24}" + "".join(f"{arm:>10}" for arm in ARMS))
        for name, of_text in scores.items():
            self.stdout.write(f"{name[:23]:24}" + "".join(f"{of_text[arm].share:>10.3f}" for arm in ARMS))
        together = {
            arm: Score(
                sum(each[arm].wanted for each in scores.values()),
                sum(each[arm].found for each in scores.values()),
            )
            for arm in ARMS
        }
        self.stdout.write(f"{'together':24}" + "".join(f"{together[arm].share:>10.3f}" for arm in ARMS))
        waits = sorted(second for each in scores.values() for second in each["hybrid"].seconds)
        self.stdout.write(f"hybrid p50 {1000 * waits[len(waits) // 2]:.1f} ms, with embedding the question")


def _places(document: Document, text: str) -> dict[int, int]:
    """Return the position of each passage in the original text, by the passage's primary key."""
    places, at = {}, 0
    for passage in document.passages.order_by("number"):
        at = max(text.find(passage.text.strip(), at), at)
        places[passage.pk] = at
    return places


def _returned(passages: list[FoundPassage], places: dict[int, int]) -> set[int]:
    """Return the positions, in the original text, of the first RETURNED characters of the results."""
    returned: set[int] = set()
    room = RETURNED
    for each in passages:
        text = each.passage.text.strip()[:room]
        returned.update(range(places[each.passage.pk], places[each.passage.pk] + len(text)))
        room -= len(text)
        if room <= 0:
            break
    return returned
