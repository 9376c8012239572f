"""Build the vectors of a newly configured embedding model and show the progress: ``manage.py reembed``."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub.database.startup import running_database
from memoryhub.errors import Conflict
from memoryhub.llm.errors import EmbedderError
from memoryhub.management import Progress
from workspaces.index import embedding, reembedding
from workspaces.index.reembedding import Outcome
from workspaces.models import EmbeddingModel

FOR_AS_LONG_AS_IT_TAKES = float("inf")
LOOK_EVERY_SECONDS = 1.0  # while another process builds


class Command(BaseCommand):
    help = (
        "Build vectors of the configured embedding model for all memories, then let recall compare them. "
        "Recall goes on meanwhile. Can be interrupted at any time, and goes on where it was."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--status", action="store_true", help="say how far it is, and do nothing")
        what.add_argument("--stop", action="store_true", help="build no further, here or in the background")
        what.add_argument(
            "--again", action="store_true", help="build anew although the model's name is the same"
        )

    def handle(self, *args: Any, status: bool, stop: bool, again: bool, **options: Any) -> None:
        self.progress = Progress(self.stderr)
        with running_database():
            if stop:
                self.stdout.write("Stopped." if reembedding.stop() else "Nothing is being built.")
            elif not status:
                self._build(again)
            self._status()

    def _build(self, again: bool) -> None:
        try:
            if again or _changed_size():
                reembedding.rebuild_same_model()
            if reembedding.start() is None:
                return
            outcome = self._follow()
        except EmbedderError as error:
            raise CommandError(f"The configured embedding model cannot be asked: {error}") from None
        except Conflict as refusal:
            raise CommandError(refusal.message) from None
        except KeyboardInterrupt:
            self.progress.end()
            self.stderr.write(
                "Interrupted. What has been built stays. Where MemoryHub is running, building continues in the "
                "background; --stop stops that too."
            )
            return
        self.progress.end()
        if outcome == Outcome.FAILING:
            raise CommandError("The model does not answer. Run this again, or let the background try again.")

    def _follow(self) -> Outcome:
        """Build vectors, or show the progress of another process that does, until this ends, is stopped or fails."""
        while True:
            outcome = reembedding.advance(seconds=FOR_AS_LONG_AS_IT_TAKES, progressed=self._show)
            if outcome != Outcome.ELSEWHERE:
                return outcome
            model = EmbeddingModel.objects.building()
            if model is not None:
                self._show(model)
            time.sleep(LOOK_EVERY_SECONDS)

    def _show(self, model: EmbeddingModel) -> None:
        self.progress.show(f"{model.label}: {model.progress}")

    def _status(self) -> None:
        active, building = EmbeddingModel.objects.active(), EmbeddingModel.objects.building()
        if active is None:
            self.stdout.write("Nothing was embedded yet.")
            return
        self.stdout.write(f"Recall compares vectors of {active.label} ({active.dimension} dimensions).")
        if building is not None:
            self.stdout.write(f"Being built: {building.label} ({building.dimension}): {building.progress}.")


def _changed_size() -> bool:
    """Return whether the active model's endpoint now returns vectors of another size. Costs one embedding."""
    configured, active = embedding.get_embedder(), EmbeddingModel.objects.active()
    if configured is None or active is None or configured.name != active.name:
        return False
    if EmbeddingModel.objects.building() is not None:
        return False
    try:
        embedding.vectors_of(active, ["How long is a vector?"])
    except embedding.EmbedderChangedSize:
        return True
    return False
