"""Recall questions: test questions of a workspace, with the memories that recall should find.

They are run again whenever something changes that affects their results. A question with a personal memory belongs to
one person and runs as that person. All others run without personal memories, so that every member sees the same result.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Count, F, Max, Min, Prefetch, QuerySet
from django.utils.translation import gettext as _

from memories.access import count_live, live_in
from memories.judging.secret_filter import find_secret
from memories.models import ExpectedMemory, Memory, RecallQuestion
from memories.models.memory import MEMORY
from memories.models.recall import QUESTION_LENGTH
from memories.recalling.ranking import injection_threshold
from memories.recalling.recall import MAX_LIMIT, Recall, recall, split_recall
from memoryhub.errors import Conflict, Invalid, NotFound, SecretRefused
from workspaces.access import lock_to_count, require
from workspaces.actions.workspaces import clean_text
from workspaces.data_policy import DataPolicy
from workspaces.index.embedding import active_model
from workspaces.models import PassageVector, Role, User, Workspace

MOST_QUESTIONS = 200  # of a workspace
MOST_EXPECTED = 10  # of a question
OFFERED = 8


def questions_of(workspace: Workspace, user: User) -> QuerySet[RecallQuestion]:
    """Return the questions that the user may see, newest first, with ``expected`` prefetched. Two queries."""
    return with_expected(RecallQuestion.objects.visible_to(user).filter(workspace=workspace))


def get_question(
    user: User, public_id: str, *, workspace: Workspace, need: Role = Role.VIEWER
) -> RecallQuestion:
    """Return a question. Raises NotFound if the user may not see it, Forbidden if their role is below ``need``."""
    question = questions_of(workspace, user).filter(public_id=public_id).first()
    if question is None:
        raise NotFound(_("This question does not exist, or you do not have access to it."))
    require(workspace.role, need)
    return question


def save_question(
    workspace: Workspace, text: str, memories: Sequence[Memory], *, by: User, now: datetime
) -> RecallQuestion:
    """Save a question with the expected memories, and run it at once.

    ``memories`` must be of this workspace and visible to ``by``. Raises SecretRefused for a credential, Invalid for a
    wrong number of memories or an assistant's memory, and Conflict if the workspace has MOST_QUESTIONS questions.
    """
    text = clean_text("text", text.strip(), low=1, high=QUESTION_LENGTH)
    if find_secret(text):
        raise SecretRefused()
    if not 1 <= len(memories) <= MOST_EXPECTED:
        message = _("Choose 1 to %(most)s memories that should be found.") % {"most": MOST_EXPECTED}
        raise Invalid(fields={"memories": message})
    if any(memory.agent_id for memory in memories):
        message = _("An assistant's memories are recalled only in chats with it, so not here.")
        raise Invalid(fields={"memories": message})
    with transaction.atomic():
        lock_to_count(workspace)
        if RecallQuestion.objects.filter(workspace=workspace).count() >= MOST_QUESTIONS:
            message = _("This workspace keeps %(most)s questions already. Remove one first.")
            raise Conflict(message % {"most": MOST_QUESTIONS})
        personal = any(memory.owner_id for memory in memories)
        question = RecallQuestion.objects.create(
            workspace=workspace, text=text, owner=by if personal else None, created_by=by, created_at=now
        )
        expected = [ExpectedMemory(question=question, memory=memory) for memory in dict.fromkeys(memories)]
        ExpectedMemory.objects.bulk_create(expected)
    run([question], now=now)
    return question


def misses(question: RecallQuestion) -> list[ExpectedMemory]:
    """Return the expected memories that were not used at the last run."""
    return [expected for expected in question.expected.all() if not expected.used]


def rates(questions: Iterable[RecallQuestion]) -> dict[str, int]:
    """Return three counts: ``expected`` memories, those of them that were used (``right``), and all ``used`` ones."""
    rows = list(questions)
    expected = [each for question in rows for each in question.expected.all()]
    return {
        "expected": len(expected),
        "right": sum(each.used for each in expected),
        "used": sum(question.used_count for question in rows),
    }


def run(questions: Iterable[RecallQuestion], *, now: datetime, seconds: float | None = None) -> int:
    """Run questions and store their results. Stop after ``seconds``, and return how many ran. Costs one recall each."""
    began, run_count, states = time.monotonic(), 0, dict[int, str]()
    for question in questions:
        if seconds is not None and time.monotonic() - began > seconds:
            break
        workspace = question.workspace
        state = states[workspace.pk] = states.get(workspace.pk) or state_of(workspace)
        recall_result, used = _recall_for(question, now)
        places = {item.memory.pk: place for place, item in enumerate(recall_result.items)}
        for expected in question.expected.all():
            place = places.get(expected.memory_id)
            expected.rank = None if place is None else place + 1
            expected.used, expected.reason = (False, "") if place is None else used[place]
            expected.save(update_fields=["rank", "used", "reason"])
        question.ran_at, question.ran_with, question.degraded = now, state, recall_result.degraded
        question.used_count = sum(is_used for is_used, _ in used)
        question.save(update_fields=["ran_at", "ran_with", "degraded", "used_count"])
        run_count += 1
    return run_count


def run_changed(*, now: datetime, seconds: float) -> int:
    """Run the questions of changed workspaces, oldest run first, for about ``seconds``. Return how many ran."""
    began, run_count = time.monotonic(), 0
    places = Workspace.objects.annotate(ran=Min("recall_questions__ran_at"), n=Count("recall_questions"))
    for workspace in places.filter(n__gt=0).order_by(F("ran").asc(nulls_first=True)):
        left = seconds - (time.monotonic() - began)
        if left <= 0:
            break
        changed = RecallQuestion.objects.filter(workspace=workspace).exclude(ran_with=state_of(workspace))
        run_count += run(with_expected(changed), now=now, seconds=left)
    return run_count


def state_of(workspace: Workspace) -> str:
    """Return a text that changes whenever results may: with the embedder, threshold, limit or memories. Two queries."""
    model = active_model() or ""
    memories = Memory.objects.filter(workspace=workspace).aggregate(number=Count("*"), last=Max("updated_at"))
    vectors = PassageVector.objects.filter(place=workspace.pk, kind=MEMORY, live=True, model=model).count()
    changed = memories["last"].timestamp() if memories["last"] else 0
    numbers = (settings.RECALL_THRESHOLD, settings.RECALL_LIMIT, memories["number"], vectors, changed)
    return "|".join([*map(str, numbers), model])[:200]


def offered(workspace: Workspace, user: User, text: str, words: str, *, now: datetime) -> list[Memory]:
    """Return memories to choose the expected ones of a question from: those with ``words``, then those recalled."""
    here = live_in(workspace, user, now).filter(agent=None).select_related("author", "edited_by")
    for word in words.split()[:OFFERED]:
        here = here.filter(content__icontains=word)
    named = list(here.order_by("-created_at", "-pk")[:OFFERED]) if words.strip() else []
    with transaction.atomic():  # rolled back, so that no memory counts as used
        recall_result = recall(
            text, workspace, user, limit=OFFERED, now=now, policy=DataPolicy.here(workspace)
        )
        transaction.set_rollback(True)
    recalled = [item.memory for item in recall_result.items if item.memory.workspace_id == workspace.pk]
    return list({memory.pk: memory for memory in [*named, *recalled]}.values())


def with_expected(questions: QuerySet[RecallQuestion]) -> QuerySet[RecallQuestion]:
    """Prefetch the expected memories, without deleted ones and those that are now another person's personal memory."""
    live = ExpectedMemory.objects.filter(memory__in=Memory.objects.live()).select_related("memory")
    mine = live.filter(memory__owner=None) | live.filter(memory__owner=F("question__owner"))
    questions = questions.select_related("workspace", "owner", "created_by")
    return questions.prefetch_related(Prefetch("expected", queryset=mine.order_by("pk")))


def _recall_for(question: RecallQuestion, now: datetime) -> tuple[Recall, list[tuple[bool, str]]]:
    """Return what recall finds for the question now, and the verdicts of ``split_recall``."""
    workspace, personal = question.workspace, question.owner is not None
    members = User.objects.filter(memberships__workspace=workspace).order_by("pk")
    person = question.owner or members.first()  # the result is the same for every member
    if person is None:
        return Recall(), []
    policy = replace(DataPolicy.here(workspace), personal=personal)
    memories = count_live(workspace, person, personal=personal, now=now)
    threshold = injection_threshold(settings.RECALL_THRESHOLD, memories)
    with transaction.atomic():  # rolled back, so that no memory counts as used
        try:
            recall_result = recall(question.text, workspace, person, limit=MAX_LIMIT, now=now, policy=policy)
        except NotFound:  # the owner of the question has left
            return Recall(), []
        transaction.set_rollback(True)
    return recall_result, split_recall(recall_result, threshold=threshold, limit=settings.RECALL_LIMIT)
