"""Run the recall questions of workspaces: ``manage.py recall_test [WORKSPACE …]``."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from memories.models import ExpectedMemory, RecallQuestion
from memories.recalling import recall_tests
from memoryhub.database.startup import running_database


class Command(BaseCommand):
    help = (
        "Ask the questions that workspaces keep and list the memories that an answer would go without. A person's own "
        "questions are listed by their ids alone. Ends with 1 if something is missed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workspaces", nargs="*", help="ids of workspaces; all unless given")

    def handle(self, *args: Any, workspaces: list[str], **options: Any) -> None:
        with running_database():
            rows = RecallQuestion.objects.order_by("workspace", "pk")
            if workspaces:
                rows = rows.filter(workspace__public_id__in=workspaces)
            run_count = recall_tests.run(recall_tests.with_expected(rows), now=timezone.now())
            missed = 0
            for question in recall_tests.with_expected(rows):
                if missed_memories := recall_tests.misses(question):
                    missed += 1
                    self._print(question, missed_memories)
            rates = recall_tests.rates(recall_tests.with_expected(rows))
        self.stdout.write(
            f"{run_count} questions asked, {missed} with a memory that an answer would go without."
        )
        line = "Answers use {right} of {expected} expected memories, and {used} memories in all."
        self.stdout.write(line.format(**rates))
        if missed:
            raise CommandError(f"{missed} of {run_count} questions missed something.")

    def _print(self, question: RecallQuestion, missed_memories: list[ExpectedMemory]) -> None:
        text = question.public_id if question.owner_id else f"{question.public_id} {question.text}"
        self.stdout.write(f"{question.workspace.public_id} {text}")
        for expected in missed_memories:
            at = f"at place {expected.rank}, {expected.reason}" if expected.rank else "not found"
            content = "" if question.owner_id else f" {expected.memory.content[:100]}"
            self.stdout.write(f"    {expected.memory.public_id} {at}{content}")
