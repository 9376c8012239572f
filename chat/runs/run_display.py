"""Display of runs in pages and the API: tasks with their steps, and the result with sources."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any
from urllib.parse import urlencode

from django.db.models import Min
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.models import Chat, Message
from chat.models.runs import Run, RunStatus, RunStep
from chat.runs.run_entries import memory_keys
from chat.runs.transitions import PLAN, PLANNING, WHOLE
from memories.models import Memory
from workspaces.data_policy import DataPolicy, within_policy
from workspaces.models import Document, DocumentPassage, User, Workspace


def tasks_of(run: Run) -> list[dict[str, Any]]:
    """Return the tasks in the plan's order, each with the steps that have begun. Two queries."""
    by_task: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for step in run.steps.defer("transcript"):
        by_task[step.task].append(step_json(step))
    return [
        {
            "id": task.ref,
            "title": task.title,
            "depends_on": task.depends_on,
            "status": task.status,
            "member": task.member or None,
            "steps": by_task[task.ref],
        }
        for task in run.tasks.all()
    ]


def step_json(step: RunStep) -> dict[str, Any]:
    return {
        "id": step.ref,
        "status": step.status,
        "rounds": step.rounds,
        "error": step.error,
        "member": step.unit.get("member") or None,
        "started_at": step.started_at,
        "finished_at": step.finished_at,
    }


def tasks_for_people(run: Run) -> list[dict[str, Any]]:
    """Return the tasks for a page, with titles of dependencies in ``after``; "stopped" if the run stopped before."""
    tasks = tasks_of(run)
    titles = {task["id"]: title_shown(task["title"]) for task in tasks}
    for task in tasks:
        task["title"] = titles[task["id"]]
        task["after"] = [titles.get(name, name) for name in task["depends_on"]]
        for each in (task, *task["steps"]) if run.status == RunStatus.STOPPED else ():
            each["status"] = "stopped" if each["status"] in ("running", "working") else each["status"]
    return tasks


def title_shown(title: str) -> str:
    """Return the title, translated if it is one of the default titles."""
    return _(title) if title in (WHOLE, PLAN) else title


def planning_of(run: Run) -> RunStep | None:
    return run.steps.filter(ref=PLANNING).first()


def result_of(run: Run) -> Any:
    """Return the result of the last task; None until it is done."""
    last = run.tasks.last()
    if last is None:
        return None
    entry = run.entries.filter(key=memory_keys.task(last.ref)).first()
    return None if entry is None else json.loads(entry.json)


def result_text(run: Run) -> str:
    """Return the result for display: text unchanged, other values as a JSON code block."""
    result = result_of(run)
    if result is None or isinstance(result, str):
        return result or ""
    return "```json\n" + json.dumps(result, ensure_ascii=False, indent=2).replace("```", "'''") + "\n```"


def text_for_webhook(workspace: Workspace, public_id: str) -> dict[str, Any] | None:
    run = Run.objects.filter(workspace=workspace, is_private=False, public_id=public_id).first()
    if run is None:
        return None
    return {"objective": run.objective, "result": result_of(run), "error": run.error}


ID = r"\b(?:mem|msg|doc)_[A-Za-z0-9]{24}(?:#\d{1,5})?\b"  # for a document with its page
ADDRESS = r"(?<!\()https?://[^\s<>()\[\]\"'`]*[^\s<>()\[\]\"'`.,;:!?]"
SOURCE = re.compile(f"{ID}|{ADDRESS}")
NUMBERED = re.compile(r"^[ \t]*(?:[-*]\s+)?\[?(\d{1,2})\]?[.):]?\s+(\S.*)$", re.MULTILINE)
CITED = re.compile(r"\[(\d{1,2}(?:, ?\d{1,2}){0,9})\](?!\()")


def with_sources(run: Run, text: str, reader: User) -> str:
    """Return the report as Markdown in which citations ([1]) and ids of sources that ``reader`` may open are links."""
    links = _links(run, set(SOURCE.findall(text)), reader)
    numbers: dict[int, str] = {}
    for line in NUMBERED.finditer(text):
        named = next((links[source] for source in SOURCE.findall(line[2]) if source in links), None)
        if named:
            numbers.setdefault(int(line[1]), named)

    def cited(match: re.Match[str]) -> str:
        cited_numbers = [int(number) for number in match[1].split(",")]
        if not any(number in numbers for number in cited_numbers):
            return match[0]
        return " ".join(
            f"[\\[{number}\\]](<{numbers[number]}>)" if number in numbers else f"[{number}]"
            for number in cited_numbers
        )

    def opened(match: re.Match[str]) -> str:
        url = links.get(match[0])
        return match[0] if url is None else f"<{url}>" if url == match[0] else f"[{match[0]}](<{url}>)"

    return CITED.sub(cited, SOURCE.sub(opened, text))


def _links(run: Run, sources: set[str], reader: User) -> dict[str, str]:
    """Return the URL of each source that the reader may open."""
    urls = {source: source for source in sources if source in set(run.web_urls)}
    ids = {source.partition("#")[0] for source in sources}
    here = {"workspace": run.workspace_id, "public_id__in": ids}
    home = reverse("chat:workspace", args=[run.workspace.public_id])
    memories = Memory.objects.visible_to(reader).filter(**here, deleted_at=None)
    for name in memories.values_list("public_id", flat=True):
        urls[name] = f"{home}?{urlencode({'find': name})}"
    chats = Chat.objects.visible_to(reader).live().filter(workspace=run.workspace_id)
    messages = Message.objects.filter(chat__in=chats, public_id__in=ids).readable_by(reader)
    for name, chat in messages.values_list("public_id", "chat__public_id"):
        urls[name] = f"{reverse('chat:chat', args=[chat])}?at={name}#{name}"
    rows = Document.objects.live().filter(public_id__in=ids)
    held = within_policy(rows, run.workspace, reader, DataPolicy.here(run.workspace))
    documents = dict(held.values_list("public_id", "pk"))
    passages = DocumentPassage.objects.filter(document__in=documents.values()).values_list("document", "page")
    # (document, page) → the number of the page's first passage
    pages = {(document, page): first for document, page, first in passages.annotate(Min("number")).order_by()}
    for source in sources:
        name, _hash, page = source.partition("#")
        if name in documents:
            at = pages.get((documents[name], int(page))) if page else None
            url = reverse("workspaces:document", args=[run.workspace.public_id, name])
            urls[source] = url if at is None else f"{url}?passage={at}#passage-{at}"
    return urls
