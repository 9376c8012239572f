"""Measure the cost of runs beside the model: a step, a long memory, and a hundred runs at once.

    python -m tests.bench.bench_runs [steps] [memory] [hundred]

Starts a database in a temporary folder and a scripted model over real HTTP. **steps**: milliseconds and tokens of a
step over the bare call of the model. **memory**: lists and reads of a memory of 100, 200 and 1,000 entries of which the
same hundred are requested, and of all, of which a list gives 200; as ratios within one run. **hundred**: a hundred runs
of twenty steps, half of them one person's, by two worker processes; how long people wait who started a single one.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import django

from tests.fakes.openai_server import Answer, ScriptedOpenAI
from tests.stack import Stack, running_stack

STEPS = 60
DELAY = 0.05  # seconds that the scripted model takes for a reply, where there are many runs
PEOPLE, RUNS, LONG = 11, 100, 20
MOST_SECONDS = 380


def a_plan(steps: int) -> dict[str, Any]:
    """Return a plan that is a chain: each step depends on the one before."""
    chain = [
        {"id": f"s{n}", "instructions": "Say a word.", "depends_on": [f"s{n - 1}"] if n else []}
        for n in range(steps)
    ]
    return {"tasks": [{"id": "task", "title": "Task", "steps": chain}]}


def median_ms(act: Callable[[], object], times: int = 30) -> float:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        act()
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)


def begin(person: Any, steps: int) -> Any:
    from django.utils import timezone

    from chat.runs.services import RunRequest, start_run
    from workspaces.access import default_workspace, get_workspace

    place = get_workspace(person, default_workspace(person).public_id)
    return start_run(place, RunRequest("Say words", plan=a_plan(steps)), by=person, now=timezone.now())


def measure_steps() -> None:
    from chat.runs.plan import PlannedStep
    from chat.runs.run_entries import MemoryKind, RunEntries
    from chat.runs.step import StepContext, StepExecutor, Unit
    from chat.runs.worker import asking, work
    from memoryhub.llm.registry import get_chat_model
    from tests.chat.runs.test_executors import added_tokens
    from tests.factories import make_user

    person, ask, memory = make_user(), asking(get_chat_model()), RunEntries()
    memory.set("task:a", MemoryKind.TASK_RESULT, 1, title="Findings")
    for what, schema, upstream in (
        ("plain text", None, ()),
        ("a schema and a key", {"type": "string"}, ("task:a",)),
    ):
        step = PlannedStep("s", "Say a word.", schema=schema)
        unit = Unit(step, "t", upstream=upstream, finishes_task=True)
        executor = StepExecutor(unit, StepContext(memory, ask))
        print(f"tokens over the bare call, {what}: {added_tokens(executor)}")
    prompt = executor.prompt()
    bare = median_ms(lambda: ask(prompt, [], may_call=False), STEPS)
    whole = []
    for _ in range(3):
        begin(person, STEPS)
        begun, busy = time.perf_counter(), time.process_time()
        done = work(seconds=120, at_once=1)
        whole.append((time.perf_counter() - begun) * 1000 / done)
        own = (time.process_time() - busy) * 1000 / done
    print(
        f"a bare call {bare:.1f} ms; a step {', '.join(f'{each:.1f}' for each in whole)} ms (three runs of {STEPS})"
    )
    print(f"a step costs {min(whole) - bare:.1f} to {max(whole) - bare:.1f} ms over the bare call")
    print(
        f"of which worker and scripted model compute {own:.1f} ms; the rest is the database and what else runs"
    )


def measure_memory() -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from chat.models import RunEntry
    from chat.runs.run_entries import MemoryKind, StoredRunEntries
    from chat.runs.run_memory_tools import ToList, list_entries, read_entries
    from tests.factories import make_user

    shared, result = MemoryKind.SHARED, MemoryKind.STEP_RESULT
    run, took = begin(make_user(), 1), dict[str, list[float]]()
    RunEntry.objects.filter(run=run).delete()
    filling = StoredRunEntries(run_pk=run.pk)
    for number in range(1_000):
        # The wanted entries lie among the rest, so that each list has to skip the newer ones.
        wanted = number < 50 or number >= 950
        kind, name, source = (shared, "noted", "ada") if wanted else (result, "other", "ben")
        filling.set(f"shared:{name}-{number}", kind, "word " * 400, source=source, title=f"Entry {number}")
    filling.keep()
    rest = RunEntry.objects.filter(run=run, source="ben")
    for count in (1_000, 200, 100):
        if count < 1_000:
            rest.filter(pk__in=rest.values("pk")[: rest.count() - (count - 100)]).delete()
        known = StoredRunEntries(run_pk=run.pk)
        acts: dict[str, Callable[[], object]] = {
            "a list of all, which gives 200 at most": partial(list_entries, known, ToList()),
            "a list of a hundred by kind": partial(list_entries, known, ToList(kind=["shared"])),
            "a list of a hundred by prefix": partial(list_entries, known, ToList(key_prefix="shared:noted")),
            "a list of a hundred by source": partial(list_entries, known, ToList(sources=["ada"])),
            "reading one": partial(read_entries, known, ["shared:noted-7"]),
        }
        for name, act in acts.items():
            act()
            with CaptureQueriesContext(connection) as queries:
                act()
            took.setdefault(name, []).append(median_ms(act, 100))
            print(f"{count:5} entries of 2 kB, {name}: {took[name][-1]:.2f} ms, {len(queries)} queries")
    for name, (many, some, few) in took.items():
        print(f"{name}: {many / few:.2f} times as long at 1,000 as at 100, {many / some:.2f} as at 200")


def measure_hundred(stack: Stack, server: ScriptedOpenAI) -> None:
    from chat.models import Run, RunStep
    from tests.factories import make_user

    server.respond = lambda request: Answer("A word.", delay=DELAY)
    people, asked = [make_user() for _ in range(PEOPLE)], len(server.chat_requests)
    Run.objects.all().delete()  # those of the other parts
    few = RUNS // 2 // (PEOPLE - 1)
    for person in people:
        for _ in range(RUNS // 2 if person is people[0] else few):
            begin(person, LONG)
    workers = [
        stack.start(f"lane-{n}", sys.executable, "-m", "tests.chat.runs.work_loop", "4") for n in range(2)
    ]
    begun = time.monotonic()
    while (left := Run.objects.filter(status="running").count()) and time.monotonic() - begun < MOST_SECONDS:
        print(f"\r{time.monotonic() - begun:.0f} s, {left} runs left  ", end="", flush=True)
        time.sleep(1)
    whole = time.monotonic() - begun
    for worker in workers:
        stack.kill(worker)
    done = RunStep.objects.filter(status="done")
    first = done.order_by("started_at").values_list("started_at", flat=True)[0]
    print(
        f"\r{done.count()} steps of {RUNS} runs in {whole:.0f} s, {done.count() / whole:.1f} a second; {left} runs left"
    )
    each = []
    for person in people:
        ends = done.filter(user=person).order_by("-finished_at").values_list("finished_at", flat=True)[0]
        each.append((ends - first).total_seconds())
    alone, others = each[0], f"{min(each[1:]):.0f} to {max(each[1:]):.0f} s"
    print(f"who started {RUNS // 2} was done after {alone:.0f} s, who started {few} after {others}")
    waits = [
        (step.started_at - step.run.created_at).total_seconds()
        for step in done.filter(ref="s0").select_related("run")
    ]
    print(
        f"the first step of a run began {statistics.median(waits):.1f} s after its start, {max(waits):.1f} s at most"
    )
    print(
        f"requests to the model: {len(server.chat_requests) - asked}; done twice: {done.filter(lease__gt=1).count()}"
    )


def main(parts: list[str]) -> None:
    server = ScriptedOpenAI().start()
    server.respond = lambda request: Answer("A word.")
    model = {
        "MEMORYHUB_LLM_BASE_URL": server.base_url,
        "MEMORYHUB_LLM_API_KEY": server.api_key,
        "MEMORYHUB_LLM_MODEL": server.model,
        "MEMORYHUB_EMBEDDING_MODEL": "none",
        "MEMORYHUB_TURN_RATE": "10000",
        "MEMORYHUB_WORKERS": "3",
    }
    with tempfile.TemporaryDirectory(prefix="bench-runs-") as folder:
        try:
            with running_stack(Path(folder), durable=True, **model) as stack:
                os.environ.update({"DJANGO_SETTINGS_MODULE": "memoryhub.settings", **stack.env})
                sys.argv[:] = ["manage.py", "qcluster"]
                django.setup()
                if "steps" in parts:
                    measure_steps()
                if "memory" in parts:
                    measure_memory()
                if "hundred" in parts:
                    measure_hundred(stack, server)
        finally:
            server.stop()


if __name__ == "__main__":
    main(sys.argv[1:] or ["steps", "memory", "hundred"])
