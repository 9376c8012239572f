"""Measure how soon a large ChatGPT export is previewed, and how long storing it takes.

    python -m tests.bench.bench_chatgpt [--chats 300] [--messages 100] [--store]

Starts a database in a temporary folder, makes an export in which no two messages are alike, half of them the person's
own, and looks at it as the background job does. ``--store`` also stores it, which searches every message for memories.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from tests.stack import running_stack

NAMES = ("Ada", "Bruno", "Chen", "Dilek", "Emil", "Fatou", "Greta", "Hugo", "Ines", "Jonas", "Kemal", "Lotte")
PLACES = ("Oslo", "Porto", "Lyon", "Graz", "Bergen", "Ghent", "Turin", "Malmö", "Cork", "Basel", "Gdańsk")
THINGS = (
    "index",
    "report",
    "kettle",
    "bicycle",
    "query",
    "lease",
    "boiler",
    "garden",
    "tender",
    "recipe",
    "fence",
)
OWN = (
    "I moved from {place} to {other} in {year} and keep a {thing} there.",
    "My colleague {name} looks after the {thing} on {number} days a month.",
    "Could you explain why the {thing} in row {number} is slower than the one of {name}?",
    "We decided to sign the {thing} with {name} on day {number}, because the office in {place} closes.",
    "Please rewrite the paragraph about the {thing} so that it has {number} words, and keep the dates.",
    "I'm allergic to the {thing} that {name} brought from {place}.",
    "The error appears when I open the {thing} in {place}, but only after {number} minutes.",
    "What would {name} do with {number} old parts of a {thing}?",
)
ANSWER = (
    "The {thing} of {name} was made in {place} in {year}, and its part {number} is best replaced each spring."
)


def text(choose: random.Random, sentences: tuple[str, ...], count: int) -> str:
    def filled() -> str:
        words = {
            "name": choose.choice(NAMES),
            "thing": choose.choice(THINGS),
            "year": choose.randint(1950, 2026),
        }
        place, other = choose.sample(PLACES, 2)
        return choose.choice(sentences).format(
            **words, place=place, other=other, number=choose.randint(2, 9_999)
        )

    return " ".join(filled() for _ in range(count))


def export(chats: int, messages: int) -> Iterator[bytes]:
    choose = random.Random(7)
    for number in range(chats):
        mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None}}
        parent = "root"
        for at in range(messages):
            own = at % 2 == 0
            said = text(choose, OWN, choose.randint(1, 4)) if own else text(choose, (ANSWER,), 4)
            message = {
                "id": f"m-{number}-{at}",
                "author": {"role": "user" if own else "assistant", "name": None, "metadata": {}},
                "create_time": 1.7e9 + number * 1000 + at,
                "update_time": None,
                "content": {"content_type": "text", "parts": [said]},
                "status": "finished_successfully",
                "metadata": {"model_slug": "gpt-5", "timestamp_": "absolute", "message_type": "next"},
                "recipient": "all",
            }
            mapping[message["id"]] = {"id": message["id"], "message": message, "parent": parent}
            parent = message["id"]
        chat = {"id": f"c-{number}", "title": f"Chat {number}", "create_time": 1.7e9, "current_node": parent}
        yield (b"," if number else b"[") + json.dumps(chat | {"mapping": mapping}).encode()
    yield b"]"


def measure(chats: int, messages: int, *, store: bool) -> None:
    from django.utils import timezone

    from chat.import_export import import_jobs
    from workspaces.access import default_workspace
    from workspaces.models import User

    user = User.objects.create_user("bench")
    home, pieces = default_workspace(user), export(chats, messages)
    imported = import_jobs.begin(
        user, workspace=home, filename="conversations.json", pieces=pieces, now=timezone.now()
    )
    print(f"{chats} chats of {messages} messages, {imported.size / 2**20:.1f} MB", flush=True)
    for what in ("previewed", "stored") if store else ("previewed",):
        began, worked = perf_counter(), process_time()
        while import_jobs.advance(imported.pk, seconds=45) == import_jobs.JobResult.UNFINISHED:
            imported.refresh_from_db()
            left = imported.seconds_left(timezone.now())
            print(f"  {imported.progress:.0%}, {left} s left by its own estimate", flush=True)
        imported.refresh_from_db()
        took = f"{perf_counter() - began:.0f} s, {process_time() - worked:.0f} s of them on a core"
        print(f"{what} in {took}: {imported.status} {imported.error}", flush=True)
        print(f"  {imported.outcomes if imported.outcomes else imported.foreseen}")
        if what == "previewed":
            seen = imported.sample
            print(f"  sample: {seen}, {seen.expected if seen else 'all'} memories expected", flush=True)
            import_jobs.start(imported, now=timezone.now())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chats", type=int, default=300)
    parser.add_argument("--messages", type=int, default=100, help="of each chat")
    parser.add_argument("--store", action="store_true", help="store it as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        os.environ.update(stack.env, DJANGO_SETTINGS_MODULE="memoryhub.settings")
        sys.argv = ["manage.py", "bench"]  # a command: no pool of connections
        import django

        django.setup()
        measure(options.chats, options.messages, store=options.store)


if __name__ == "__main__":
    main()
