"""Messages of a conversation for display, each with its receipt, its memories and a waiting plan."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any

from django.http import QueryDict
from django.utils.formats import number_format
from django.utils.functional import cached_property
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chat.answer_steps import ShownCall, ShownStep, artifacts_of, calls_of, steps_of
from chat.chats.personal_memories import PromptPolicy, withheld_answers
from chat.chats.services import ratings_of
from chat.live_answers import CUT, PLAN, advice_for
from chat.models import AnswerRating, AnswerSource, Chat, Compaction, Message, MessageRole, MessageStatus
from chat.models.runs import Run, RunStatus
from chat.modes.registry import get_mode
from chat.prompting.short_term_memory import wants_long_term
from chat.rendering.stored_html import Shown, cited_in, html_or_source, show, with_links
from chat.runs import plan
from chat.runs.services import may_steer
from chat.turns.compaction import latest_compaction
from chat.turns.services import Turn, count_versions, current_version_of
from chat.turns.sources import sources_for_reader
from memories.models import Extraction, Memory, Receipt, SourceType
from memories.recalling.recall import OTHERS_READ, receipts_for
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.models import Document, DocumentPicture, User


@dataclass(frozen=True)
class ShownPlan:
    """A run's plan that waits for review. ``focus``: id of the task last moved or added."""

    run: Run
    tasks: Sequence[plan.ShownTask]
    can_steer: bool
    focus: str = ""


def planned(
    run: Run, *, can_steer: bool, rows: Sequence[plan.Row] | None = None, focus: str = ""
) -> ShownPlan | None:
    """Return the run's plan for display if it waits for review, else None. ``rows``: unsaved changes from a form."""
    if run.status != RunStatus.WAITING or run.plan is None:
        return None
    rows = plan.rows_of(run.plan) if rows is None else rows
    return ShownPlan(run, plan.shown(run.plan, rows), can_steer, focus)


def plan_of_answer(answer: Message, chat: Chat, user: User) -> ShownPlan | None:
    """Return the plan of an answer if it waits for review, else None. One query, or none if the mode has no plan."""
    if not get_mode(answer.mode).may_wait:
        return None
    run = Run.objects.visible_to(user).filter(answer=answer).select_related("user").first()
    return None if run is None else planned(run, can_steer=may_steer(run, chat.role, user))


def plan_in(run: Run, posted: QueryDict) -> dict[str, Any] | None:
    """Return the run's plan as edited in the form. None if the form has no plan or the run does not wait for review."""
    rows = rows_in(posted)
    return plan.edited(run.plan, rows) if rows and run.plan and run.status == RunStatus.WAITING else None


def rows_in(posted: QueryDict) -> list[plan.Row]:
    return plan.rows_in(posted.getlist("id"), posted.getlist("text"))


WINDOW = 60
PAGE_TEXT = 2_000_000  # characters of text and HTML, above which a page has fewer messages than WINDOW
MOST_AFTER = 4 * WINDOW  # limit of messages after a requested one


@dataclass
class Entry:
    """A message for display, with everything that its reader may see beside it. ``kept``: the memory saved from it."""

    message: Message
    now: datetime
    is_last: bool = False
    author: str = ""
    has_receipt: bool = False
    used_count: int = 0
    profile_count: int = 0  # lines of the profile in the prompt
    left_out: int = 0
    withheld: int = 0  # how many of ``left_out`` are personal memories, left out because others read the chat
    saved: list[Memory] = field(default_factory=list)
    unsaved: str = ""  # status of an extraction from this turn that failed, or whose last attempt did
    degraded: str = ""
    kept: Memory | None = None
    calls: list[ShownCall] = field(default_factory=list)
    steps: list[ShownStep] = field(default_factory=list)
    pictures: list[DocumentPicture] = field(default_factory=list)  # sent with the message
    files: list[Document] = field(default_factory=list)  # documents chosen for the message, without pictures
    # Document passages in the prompt, which the answer may cite.
    sources: list[AnswerSource] = field(default_factory=list)
    compaction: Compaction | None = None  # summary that replaces the messages above in the prompt
    is_cut: bool = False  # the messages above are not in the prompt
    is_own: bool = False  # written by the reader
    asks_memory: bool = False  # asks to remember something, while memory was off
    has_withheld_answer: bool = False  # its answer is personal, and the reader had no access to the chat then
    versions: int = 0  # number of other versions
    older: int = 0  # number of earlier versions
    may_step: bool = False  # another version can replace it
    rating: AnswerRating | None = None  # the reader's rating
    shows_versions: bool = False
    plan: ShownPlan | None = None  # research plan that waits for a user
    shown: Shown | None = None  # HTML of a finished answer

    @property
    def before(self) -> list[ShownStep]:
        """Return the steps shown before the answer's text: all except checks."""
        return [shown for shown in self.steps if not shown.is_check]

    @property
    def after(self) -> list[ShownStep]:
        return [shown for shown in self.steps if shown.is_check]

    def take_receipt(self, receipt: Receipt) -> None:
        items = receipt.shown
        self.has_receipt, self.degraded = True, receipt.degraded
        used = sum(item.used and not item.in_profile for item in items)
        self.profile_count = sum(item.in_profile for item in items)
        self.left_out = len(items) - used - self.profile_count
        self.used_count = used + receipt.forgotten
        self.withheld = sum(item.reason == OTHERS_READ for item in items)

    def take_documents(self, there: dict[str, Document]) -> None:
        for document in filter(None, map(there.get, self.message.only_documents or ())):
            if hasattr(document, "picture"):
                self.pictures.append(document.picture)
            else:
                self.files.append(document)

    @property
    def shows_receipt(self) -> bool:
        """Whether the receipt lists memories, or notes that not all could be searched."""
        return self.has_receipt and bool(self.used_count or self.left_out or self.degraded)

    @property
    def html(self) -> SafeString:
        """Return the stored HTML of a finished answer, with its citations as links."""
        return with_links(self.shown.html, self.sources) if self.shown else SafeString()

    @property
    def cited(self) -> Sequence[AnswerSource]:
        return cited_in(self.message.content, self.sources)

    @property
    def growing(self) -> SafeString:
        """Return the HTML of an answer that is still being written, as far as it goes."""
        return html_or_source(self.message.content)

    @property
    def took(self) -> str:
        """Return how long the answer took. "" if that is unknown, because it was continued or tried again."""
        message = self.message
        if message.finished_at is None or message.attempt > 1 or message.is_imported:
            return ""
        seconds = (message.finished_at - message.created_at).total_seconds()
        if seconds < 60:
            return _("Took %s s") % number_format(seconds, 1)
        minutes, rest = divmod(round(seconds), 60)
        return _("Took %(minutes)s min %(seconds)s s") % {"minutes": minutes, "seconds": rest}

    @cached_property
    def is_abandoned(self) -> bool:
        return self.message.is_abandoned(self.now)

    @cached_property
    def is_streaming(self) -> bool:
        return self.message.status == MessageStatus.STREAMING and not self.is_abandoned

    @property
    def has_failed(self) -> bool:
        return self.is_abandoned or self.message.status == MessageStatus.FAILED

    @property
    def advice(self) -> str:
        """Return what the user can do about a failed answer besides retrying, as a sentence or ""."""
        has_code = self.is_cut_short or self.message.status == MessageStatus.FAILED
        return advice_for(self.message.error_code) if has_code else ""

    @property
    def is_cut_short(self) -> bool:
        """Return whether the answer reached the model's length limit and can be continued."""
        return self.message.status == MessageStatus.DONE and self.message.error_code == CUT

    @property
    def problem(self) -> str:
        """Return a sentence that says why the answer is incomplete, or ""."""
        if self.is_abandoned:
            return _(
                "The server stopped in the middle of this answer. Your message and the text so far are saved."
            )
        if self.message.status == MessageStatus.FAILED:
            return self.message.error or _("The answer failed. Your message is saved.")
        if self.message.status == MessageStatus.STOPPED:
            return _("Stopped. The text so far is kept.")
        if self.is_cut_short:
            return _("The answer reached the length limit of one reply.")
        if self.message.error_code == PLAN and self.plan is None and not self.is_streaming:
            return _("This research was planned, and not started here.")
        return ""


@dataclass(frozen=True)
class Transcript:
    """A page of the conversation. ``earlier``: id of the oldest shown message if there are older ones, else ""."""

    entries: list[Entry]
    earlier: str = ""
    later: bool = False

    @property
    def mode(self) -> str:
        """Return the mode of the latest answer, which is the default for the next message."""
        return self.entries[-1].message.mode if self.entries else ""


def load_transcript(
    chat: Chat, user: User, *, now: datetime, before: str = "", around: str = "", window: int = WINDOW
) -> Transcript:
    """Return the latest messages, or those ``before`` or ``around`` the message of this id. At most 11 queries."""
    readable = chat.messages.readable_by(user)
    messages = readable.current().select_related("author", "imported_by").order_by("-id")
    if before:
        messages = messages.filter(pk__lt=chat.messages.filter(public_id=before).values("pk"))
    named = readable.filter(public_id=around).first() if around else None
    later = False
    if named is not None:
        shown = current_version_of(named)
        following = list(messages.filter(pk__gte=shown.pk).order_by("pk")[: MOST_AFTER + 1])
        newer = fitting(following[:MOST_AFTER])
        later = len(newer) < len(following)
        older = list(messages.filter(pk__lt=shown.pk)[: window // 2 + 1])
        page_messages = [*reversed(newer), *fitting(older[: window // 2])]
        more = len(page_messages) < len(newer) + len(older)
    else:
        read = list(messages[: window + 1])
        page_messages = fitting(read[:window])
        more = len(page_messages) < len(read)
    page_messages.reverse()
    earlier = page_messages[0].public_id if more else ""
    entries = entries_for(page_messages, chat, user, now=now, ends=not before and not later)
    for entry in entries:
        entry.shows_versions = named is not None and named != shown and entry.message == shown
    if not before and not later:
        _mark_what_the_model_sees(entries, chat, user)
    return Transcript(entries, earlier, later)


def fitting(messages: list[Message]) -> list[Message]:
    """Return the first messages that fit on a page by text length. The first one is always included."""
    room = PAGE_TEXT
    for number, message in enumerate(messages):
        room -= len(message.content) + len(message.html)
        if room < 0 and number:
            return messages[:number]
    return messages


def _mark_what_the_model_sees(entries: Sequence[Entry], chat: Chat, user: User) -> None:
    """Mark where the summarised messages end, and where the messages in the prompt begin. One query."""
    if not entries:
        return
    compaction = latest_compaction(chat, PromptPolicy(user, since=None, model_is_remote=False))
    answers = [entry.message for entry in entries if entry.message.role == MessageRole.ASSISTANT]
    seen_from = answers[-1].seen_from if answers else None
    upto = compaction.upto_id if compaction else 0
    for earlier, entry in zip([None, *entries], entries, strict=False):
        before = earlier.message.pk if earlier else 0
        if before <= upto < entry.message.pk and compaction is not None:
            entry.compaction = compaction
        entry.is_cut = seen_from is not None and before < seen_from <= entry.message.pk and before > upto


def entries_for(
    messages: Sequence[Message], chat: Chat, user: User, *, now: datetime, ends: bool = True
) -> list[Entry]:
    """Return the messages for display. ``ends``: the last one is the chat's, which gets a button to answer again."""
    if not messages:
        return []
    answers = [message for message in messages if message.role == MessageRole.ASSISTANT]
    answer_pks = [answer.pk for answer in answers]
    receipts = receipts_for([answer.public_id for answer in answers], user)
    calls = calls_of(answer_pks, user)
    written = artifacts_of(chain.from_iterable(calls.values()), user)
    steps = steps_of(answers, user)
    sources = sources_for_reader(answer_pks, user)
    shown = show(answers)
    ratings = ratings_of(answer_pks, user)
    user_memories, noticed = _memories_of(messages, user)
    unsaved = _unsaved(answers, user)
    versions = count_versions(messages)
    documents = _documents_of(messages, chat, user)
    withheld = withheld_answers(messages, user)
    entries, question = list[Entry](), ""
    for message in messages:
        entry = Entry(message, now, kept=user_memories.get(message.public_id))
        entry.versions, entry.older = versions.get(message.pk, (0, 0))
        entry.may_step = message.superseded_by_id is None and message.role == MessageRole.USER
        if message.role == MessageRole.USER:
            question = message.public_id
            entry.is_own = message.author_id == user.pk
            entry.has_withheld_answer = message.pk in withheld
            entry.take_documents(documents)
            if not entry.is_own:
                entry.author = message.author.shown_name if message.author else _("Someone who left")
        else:
            entry.shown = shown.get(message.pk)
            entry.rating = ratings.get(message.pk)
            entry.sources = sources.get(message.pk, [])
            if receipt := receipts.get(message.public_id):
                entry.take_receipt(receipt)
            is_over = not entry.is_streaming
            entry.calls = [
                ShownCall(call, is_over, written.get(call.arguments.get("artifact", "")))
                for call in calls.get(message.pk, ())
            ]
            entry.steps = [ShownStep(step, is_over) for step in steps.get(message.pk, ())]
            entry.saved = [*noticed[question], *noticed[message.public_id]]
            if entries and not message.memory_enabled:
                previous = entries[-1]
                previous.asks_memory = (
                    previous.is_own and not previous.kept and wants_long_term(previous.message.content)
                )
            entry.unsaved = unsaved.get(message.public_id, "")
        entries.append(entry)
    if ends:
        last = entries[-1]
        last.is_last = last.may_step = True  # no later message depends on it
        if not last.is_streaming:
            last.plan = plan_of_answer(last.message, chat, user)
    return entries


def entries_sent(turn: Turn, chat: Chat, user: User, *, now: datetime) -> list[Entry]:
    """Return a question just sent and its empty answer. One query if the question names documents, else none."""
    question = Entry(turn.message, now, is_own=True, may_step=True)
    question.take_documents(_documents_of([turn.message], chat, user))
    return [question, Entry(turn.answer, now, is_last=True, may_step=True)]


def entry_for(message: Message, chat: Chat, user: User, *, now: datetime) -> Entry:
    messages = [message.reply_to, message] if message.reply_to else [message]
    newest = chat.messages.current().order_by("-id").values_list("pk", flat=True).first()
    return entries_for(messages, chat, user, now=now, ends=newest == message.pk)[-1]


def _documents_of(messages: Sequence[Message], chat: Chat, user: User) -> dict[str, Document]:
    """Return the messages' documents by id, with pictures but without their bytes. No query if there are none."""
    wanted = {each for message in messages for each in message.only_documents or ()}
    rows = Document.objects.live().filter(public_id__in=wanted)
    there = within_policy(rows, chat.workspace, user, DataPolicy.here(chat.workspace))
    return {each.public_id: each for each in there.select_related("picture").defer("picture__jpeg")}


def _unsaved(answers: Sequence[Message], user: User) -> dict[str, str]:
    """Return the status of failed and retried extractions by the answer's id. One query, or none without memory."""
    if not any(answer.memory_enabled for answer in answers):
        return {}
    troubled = Extraction.objects.troubled(user, [answer.public_id for answer in answers])
    return dict(troubled.order_by("-status").values_list("message_id", "status"))  # "failed" last: it wins


def _memories_of(
    messages: Sequence[Message], user: User
) -> tuple[dict[str, Memory], dict[str, list[Memory]]]:
    """Return two dicts by message id: the memory that a user saved the message as, and those extracted from it."""
    memories = (
        Memory.objects.visible_to(user)
        .live()
        .filter(source_message_id__in=[message.public_id for message in messages])
        .select_related("workspace")
        .order_by("pk")
    )
    user_memories, noticed = dict[str, Memory](), defaultdict(list)
    for memory in memories:
        if memory.source_type == SourceType.USER:
            user_memories[memory.source_message_id] = memory
        else:
            noticed[memory.source_message_id].append(memory)
    return user_memories, noticed
