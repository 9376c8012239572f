"""The admin of memories, with search in all workspaces and actions to edit, review, restore and forget them."""

import re
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.postgres.search import SearchQuery
from django.db.models import F, Max, Q, QuerySet
from django.db.models.functions import Now
from django.forms import Textarea
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.text import Truncator

from memories.forgetting.for_good import forget_memories
from memories.indexing import CONFIG
from memories.models import Memory, Review, Revision, SourceType
from memories.models.memory import MAY_REPLACE, MEMORY, live_at
from memories.writing import changing, extraction_jobs, gate, review
from memories.writing.drafts import CLEANERS
from memories.writing.vector_backfill import reembed
from memoryhub.database.queries import EXACT_COUNT_UP_TO
from memoryhub.ids import PATTERN
from workspaces.accounts.reauthentication import ask_for_password
from workspaces.admin.base import (
    EXCERPT,
    ConditionFilter,
    LeanAdmin,
    Messages,
    ReadOnlyInline,
    action,
    counted,
    rows_by_id,
)
from workspaces.index import embedding
from workspaces.index.embedding import active_model
from workspaces.models import User
from workspaces.models.index import has_vector


def may_read_personal(user: Any) -> bool:
    return bool(user.has_perm("memories.read_personal_memory"))


def readable(rows: QuerySet[Any], user: Any, owner: str = "owner") -> QuerySet[Any]:
    """Filter to rows about memories that this member of staff may read. ``owner`` is the lookup of their owner."""
    return rows if may_read_personal(user) else rows.filter(**{owner: None})


LIVE = live_at(Now())


class StateFilter(ConditionFilter):
    title = parameter_name = "state"
    conditions = {
        "live": ("In use", LIVE),
        "pending": ("Waits for review", Q(review=Review.PENDING)),
        "replaces": ("May replace an older one", LIVE & MAY_REPLACE),
        "over": ("No longer holds", Q(deleted_at=None, valid_to__lte=Now())),
        "expired": ("Expired", Q(deleted_at=None, expires_at__lte=Now())),
        "deleted": ("Forgotten", Q(deleted_at__isnull=False, review=Review.NONE)),
        "rejected": ("Rejected", Q(review=Review.REJECTED)),
    }


class SourceFilter(ConditionFilter):
    title = parameter_name = "source"
    conditions = {
        **{value: (str(label), Q(source_type=value)) for value, label in SourceType.choices},
        "other": ("A caller's own label", ~Q(source_type__in=SourceType.values)),
    }


class VectorFilter(ConditionFilter):
    title = parameter_name = "vector"
    conditions = {
        "with": ("Searchable by meaning", Q(has_vector=True)),
        "without": ("Not yet", Q(has_vector=False)),
        "failed": ("Failed", Q(embedding_failed_at__isnull=False)),
    }


PARTS_AMONG_NEWEST = 20_000
ID_FIELDS = {
    "mem": "public_id",
    "ws": "workspace__public_id",
    "chat": "source_chat_id",
    "msg": "source_message_id",
    "usr": "author__public_id",
}


def _some_keys(rows: QuerySet[Any]) -> list[int]:
    """Return the keys of matching rows, at most EXACT_COUNT_UP_TO + 1. Without an order, the planner uses the index."""
    return list(rows.order_by().values_list("pk", flat=True)[: EXACT_COUNT_UP_TO + 1])


def side_by_side(older: str, newer: str) -> str:
    """Return two texts as HTML. Words that the other text lacks are marked as deleted or inserted."""
    words = older.split(), newer.split()
    sides: tuple[list[tuple[str, str]], ...] = ([], [])
    for how, *ends in SequenceMatcher(None, *words).get_opcodes():
        for side, tag in enumerate(("del", "ins")):
            text = " ".join(words[side][slice(*ends[2 * side : 2 * side + 2])])
            sides[side].append(("span" if how == "equal" else tag, text))
    texts = (format_html_join(" ", "<{0}>{1}</{0}>", side) for side in sides)
    return format_html('<div class="pair"><p><b>Older</b><br>{}</p><p><b>Newer</b><br>{}</p></div>', *texts)


def _linked(memory: Memory | None) -> str:
    if memory is None:
        return "-"
    url = reverse("admin:memories_memory_change", args=[memory.pk])
    return format_html('<a href="{}">{}</a>', url, memory.content)


class RevisionInline(ReadOnlyInline):
    model = Revision
    fields = ("action", "by", "imported", "at", "before")
    readonly_fields = fields
    verbose_name_plural = "history, newest first"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Revision]:
        return super().get_queryset(request).select_related("by")


@admin.register(Memory)
class MemoryAdmin(LeanAdmin):
    list_display = ("opening", "workspace", "category", "source", "state", "person", "created_at")
    list_filter = (StateFilter, "pinned", SourceFilter, VectorFilter)
    ordering = ("-created_at", "-id")
    sortable_by = ("created_at",)
    ids = ID_FIELDS
    search_help_text = (
        "Words or their beginnings, or an id (mem_, ws_, chat_, msg_, usr_). What no word begins with is looked for "
        f"inside the text of the newest {PARTS_AMONG_NEWEST:,}."
    )
    # fmt: off
    actions = (
        "forget", "restore", "embed_anew", "extract_anew", "replace_older", "hold_again", "keep_both",
        "approve", "reject", "reconsider", "forget_for_good",
    )
    # fmt: on
    inlines = (RevisionInline,)
    autocomplete_fields = ("workspace",)
    # fmt: off
    text_fields = (
        "content", "summary", "category", "key", "tags", "importance", "pinned", "expires_at", "valid_from",
        "valid_to",
    )
    written = (
        "public_id", "state", "meaning", "workspace", "scope", "owner", "agent", "author", "edited_by",
        "edited_at", "imported_by", "imported_at", "older", "newer", "source_type", "source_chat_id",
        "source_message_id", "source_excerpt", "what_it_rests_on", "source_details", "created_at", "updated_at",
        "last_accessed_at", "deleted_at",
    )
    # fmt: on

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        heavy = ("search", "source_excerpt", "source_details")
        related = ("workspace", "author", "edited_by", "may_replace")
        rows = super().get_queryset(request).select_related(*related)
        rows = rows.defer(*heavy, *(f"may_replace__{name}" for name in heavy))
        return readable(rows.annotate(has_vector=has_vector(MEMORY, active_model() or "")), request.user)

    @admin.display(description="rests on")
    def what_it_rests_on(self, memory: Memory) -> str:
        named = memory.rests_on
        return f"{named['speaker']} {named['id']}".strip() if named else "-"

    @admin.display(description="memory")
    def opening(self, memory: Memory) -> str:
        return Truncator(memory.content).chars(EXCERPT)

    def describe(self, row: Memory, action: str) -> str:
        if action in {"replace_older", "keep_both"} and row.possibly_replaced:
            return side_by_side(row.possibly_replaced.content, row.content)
        return self.opening(row)

    @admin.display(description="source")
    def source(self, memory: Memory) -> str:
        return memory.source_label

    @admin.display(description="author")
    def person(self, memory: Memory) -> User | None:
        return memory.written_by

    @admin.display(description="state")
    def state(self, memory: Memory) -> str:
        words = ["in use" if memory.is_live else "forgotten" if memory.deleted_at else "expired"]
        words = [memory.get_review_display().lower()] if memory.review else words
        words += ["pinned"] if memory.pinned else []
        words += ["no longer holds"] if memory.is_over(timezone.now()) else []
        words += ["may replace an older one"] if memory.possibly_replaced else []
        words += ["personal"] if memory.owner_id else []
        words += ["imported"] if memory.is_imported else []
        words += ["an assistant's"] if memory.agent_id else []
        # Only live memories have vectors to report.
        meaning = self.meaning(memory) if memory.is_live else "yes"
        words += [] if meaning == "yes" else [f"found by meaning: {meaning}"]
        return ", ".join(words)

    @admin.display(description="found by meaning")
    def meaning(self, memory: Any) -> str:
        if embedding.get_embedder() is None:
            return "no embedder"
        known = getattr(memory, "has_vector", False)
        return "yes" if known else "failed" if memory.embedding_failed_at else "not yet"

    @admin.display(description="may replace")
    def older(self, memory: Memory) -> str:
        return _linked(memory.may_replace)

    @admin.display(description="replaced by")
    def newer(self, memory: Memory) -> str:
        return _linked(memory.replaced_by)

    def search(self, rows: QuerySet[Any], text: str) -> QuerySet[Any]:
        """Return the rows with this id or words that begin so, or else the newest that contain the text."""
        if not text or PATTERN.fullmatch(text):
            return rows_by_id(rows, text, ID_FIELDS)
        words = re.findall(r"\w+", text)[:12]
        if words:
            # Only word characters are put between the quotes, so the text cannot contain an operator.
            query = SearchQuery(" & ".join(f"'{word}':*" for word in words), config=CONFIG, search_type="raw")
            ids = _some_keys(rows.filter(search=query))
            if len(ids) > EXACT_COUNT_UP_TO:
                return rows.filter(search=query)
            if ids:
                return rows.filter(pk__in=ids)
        newest = Memory.objects.aggregate(newest=Max("pk"))["newest"] or 0
        parts = rows.filter(pk__gt=newest - PARTS_AMONG_NEWEST, content__icontains=text)
        return rows.filter(pk__in=_some_keys(parts))

    def get_fieldsets(self, request: HttpRequest, obj: Memory | None = None) -> Any:
        if obj is None:
            return [(None, {"fields": ("workspace", *self.text_fields)})]
        return [(None, {"fields": self.text_fields}), ("Where it comes from", {"fields": self.written})]

    def get_readonly_fields(self, request: HttpRequest, obj: Memory | None = None) -> Any:
        return self.written if obj else ()

    def get_inlines(self, request: HttpRequest, obj: Memory | None) -> Any:
        return self.inlines if obj else ()

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in {"content", "summary"}:
            kwargs["widget"] = Textarea(attrs={"rows": 4, "class": "vLargeTextField"})
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **more: Any) -> HttpResponse:
        """Add those of the list's actions that apply to this memory to its own page."""
        memory, offered = context["original"], dict(self.get_action_choices(request))
        fitting: list[str] = []
        if memory is not None:
            fitting += ["replace_older", "keep_both"] if memory.possibly_replaced else []
            fitting += ["approve", "reject"] if memory.review == Review.PENDING else []
            fitting += ["forget"] if memory.deleted_at is None else []
            fitting += ["restore"] if memory.deleted_at and memory.review == Review.NONE else []
        context["actions"] = [(name, offered[name]) for name in fitting if name in offered]
        return super().render_change_form(request, context, *args, **more)

    def has_change_permission(self, request: HttpRequest, obj: Memory | None = None) -> bool:
        return (obj is None or obj.deleted_at is None) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Memory | None = None) -> bool:
        """Allow the list's actions that require the delete permission, but no Delete button on a memory's page."""
        return obj is None and super().has_delete_permission(request)

    def save_or_show(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: dict[str, Any] | None
    ) -> HttpResponse:
        # Skip the transaction of Django's changeform_view, because the gate calls the embedder first and
        # opens its own.
        return self._changeform_view(request, object_id, form_url, extra_context)  # type: ignore[attr-defined]

    def save_model(self, request: HttpRequest, obj: Memory, form: Any, change: bool) -> None:
        by: Any = request.user
        values = {name: form.cleaned_data[name] for name in self.text_fields if name in form.cleaned_data}
        for name in ("category", "key", "summary"):
            values[name] = values.get(name) or None
        values["tags"] = values.get("tags") or []
        if change:
            changed = {name: values[name] for name in form.changed_data if name in CLEANERS}
            saved = gate.edit_memory(Memory.objects.get(pk=obj.pk), by=by, now=timezone.now(), **changed)
        else:
            draft = gate.Draft(workspace=form.cleaned_data["workspace"], author=by, **values)
            result = gate.save_memory(draft, by=by, now=timezone.now())
            saved, obj.was_known = result.memory, not result.created  # type: ignore[attr-defined]
        for field in Memory._meta.concrete_fields:
            if field.attname in saved.__dict__:
                setattr(obj, field.attname, saved.__dict__[field.attname])

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None if obj.was_known else super().log_addition(request, obj, message)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        if not obj.was_known:
            return super().response_add(request, obj, post_url_continue)
        text = "This is known already: nothing new was stored. Here is the memory that says it."
        self.message_user(request, text, messages.WARNING)
        return HttpResponseRedirect(reverse("admin:memories_memory_change", args=[obj.pk]))

    @action(
        "Forget (can be restored)",
        "delete",
        asks="They leave every list, count and recall at once. Their text is kept, and they can be restored.",
    )
    def forget(self, request: HttpRequest, rows: QuerySet[Memory]) -> Messages:
        yield from self.each(request, rows, rows.filter(deleted_at=None), gate.delete_memory, "forgotten")

    @action("Restore", "change", asks="They are listed, counted and recalled again.")
    def restore(self, request: HttpRequest, rows: QuerySet[Memory]) -> Messages:
        keyless = []

        def restore(memory: Memory, *, by: User, now: datetime) -> None:
            if changing.restore_memory(memory, by=by, now=now).key != memory.key:
                keyless.append(memory.public_id)

        yield from self.each(request, rows, rows.filter(deleted_at__isnull=False), restore, "restored")
        if keyless:
            ids = ", ".join(keyless)
            yield f"Came back without a key, since another memory has it by now: {ids}.", messages.WARNING

    @action(
        "Rebuild embeddings",
        "change",
        asks="Their vectors are made anew in the background. Their text stays as it is.",
    )
    def embed_anew(self, request: HttpRequest, rows: QuerySet[Memory]) -> Messages:
        if active_model() is None:
            yield "No embedder is configured, so nothing was queued.", messages.WARNING
            return
        yield f"{counted(reembed(rows), 'memory', 'memories')} queued to be embedded again.", messages.SUCCESS

    @action(
        "Rerun extraction",
        "change",
        asks="Summaries, and texts that were synthesised, are made anew from the messages they came from. "
        "What a text was before stays in its history.",
    )
    def extract_anew(self, request: HttpRequest, rows: QuerySet[Memory]) -> Messages:
        yield from self.each(request, rows, rows, extraction_jobs.rerun, "queued to be extracted again")

    @action(
        "Replace the older one",
        "change",
        asks="The older memory beside each of these no longer holds: it is recalled for questions about the past only.",
    )
    def replace_older(self, request: HttpRequest, rows: QuerySet[Memory]) -> Messages:
        wanted = rows.filter(MAY_REPLACE)
        yield from self.each(request, rows, wanted, changing.replace_older, "replaced an older one")

    @action(
        "Let the older one hold again",
        "change",
        asks="The older memory that each of these replaced holds again. Whether it is replaced is open once more.",
    )
    def hold_again(self, request: HttpRequest, rows: QuerySet[Memory]) -> Messages:
        wanted = rows.filter(may_replace__replaced_by=F("pk"))
        yield from self.each(request, rows, wanted, changing.hold_again, "no longer replacing an older one")

    @action(
        "Keep both",
        "change",
        asks="Both stay, and are no longer shown as a possible update. Nothing is forgotten.",
    )
    def keep_both(self, request: HttpRequest, rows: QuerySet[Memory]) -> Messages:
        wanted = rows.filter(MAY_REPLACE)
        yield from self.each(request, rows, wanted, changing.keep_both, "kept beside the older one")

    @action("Approve proposals", "change", asks="They are listed, counted and recalled from now on.")
    def approve(self, request: HttpRequest, rows: QuerySet[Memory]) -> Messages:
        proposals = rows.exclude(review=Review.NONE).select_related("workspace", "owner")
        yield from self.each(request, rows, proposals, review.approve, "approved")

    @action("Reject proposals", "change", asks="They are not stored, and the same is not proposed again.")
    def reject(self, request: HttpRequest, rows: QuerySet[Memory]) -> Messages:
        proposals = rows.exclude(review=Review.NONE).select_related("workspace", "owner")
        yield from self.each(request, rows, proposals, review.reject, "rejected")

    @action(
        "Put back to review",
        "change",
        asks="What was decided about them is taken back: they are out of use and wait for review again.",
    )
    def reconsider(self, request: HttpRequest, rows: QuerySet[Memory]) -> Messages:
        decided = review.decided(rows).select_related("workspace", "owner")
        yield from self.each(request, rows, decided, review.reconsider, "put back to review")

    @action(
        "Forget for good",
        "delete",
        asks="Everything about these memories is erased permanently. "
        "A keyed hash stays, so that nothing notices them again by itself.",
        danger=True,
    )
    def forget_for_good(self, request: HttpRequest, rows: QuerySet[Memory]) -> Messages:
        ask_for_password(request)
        by = cast("User", request.user)
        chosen = list(rows.select_related("workspace"))
        report = forget_memories(chosen, by=by, now=timezone.now(), among=self.get_queryset(request))
        number = report.removed.pop("memories", 0)
        rest = ", ".join(f"{each:,} {name}" for name, each in report.removed.most_common())
        sentence = f"{counted(number, 'memory', 'memories')} forgotten for good."
        yield f"{sentence} With them went {rest}." if rest else sentence, messages.SUCCESS
