"""Measure the time and memory of a save, a recall and an extraction, in this and another checkout.

    python tests/bench/bench_parts.py [--beside FOLDER] [--rounds 2]

The same texts go through the gate, through recall and through the background job without a model, in a database of
their own, one process a round, both copies in turn. Milliseconds as p50 / p95 over all rounds; memory is what the
process holds (megabytes, resident) before the first text and after each part.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[2]
TEXTS = Path(__file__).with_name("data") / "keeping"
SAVED, ASKED, MINED, WARM = 200, 100, 60, 5
PARTS = ("save", "recall", "extraction")
_FACT = re.compile(r"\{(?:[pide]:)?([^}]*)\}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beside", type=Path, help="a checkout of the project as it was")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        print(json.dumps(measured()))
        return
    copies = {"there": options.beside.resolve(), "here": HERE} if options.beside else {"here": HERE}
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in copies}
    for _ in range(options.rounds):
        for name, folder in copies.items():
            rounds[name].append(_round(folder))
    print(
        f"{'':8}"
        + "".join(f"{part:>18}" for part in PARTS)
        + f"{'MB: start':>12}{'save':>7}{'recall':>8}{'extr.':>7}"
    )
    for name, found in rounds.items():
        times = [sorted(ms for each in found for ms in each["times"][part]) for part in PARTS]
        cells = "".join(f"{_at(ms, 0.5):9.1f} / {_at(ms, 0.95):6.1f}" for ms in times)
        memory = [
            sorted(each["memory"][at] for each in found)[len(found) // 2] for at in range(len(PARTS) + 1)
        ]
        print(f"{name:8}{cells}{memory[0]:12.0f}{memory[1]:7.0f}{memory[2]:8.0f}{memory[3]:7.0f}")


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[int(share * (len(ordered) - 1))]


def _round(folder: Path) -> dict[str, Any]:
    """Run one round in that checkout, in a process with temporary data."""
    with tempfile.TemporaryDirectory(prefix="parts-") as data:
        own = {
            "PYTHONPATH": str(folder),
            "MEMORYHUB_DATA_DIR": data,
            "DJANGO_SETTINGS_MODULE": "memoryhub.settings",
        }
        command = [sys.executable, str(Path(__file__).resolve()), "--once"]
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | own,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=600,
        )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured() -> dict[str, Any]:
    """Return the times of each part in this process, and its memory before the first and after each."""
    import django

    django.setup()
    from django.utils import timezone

    from memories.recalling.recall import recall
    from memories.writing import extraction_jobs
    from memories.writing.gate import Draft, save_memory
    from memoryhub.database.startup import running_database
    from tests.factories import HERE as REACH
    from tests.factories import make_chat, make_message, make_user
    from workspaces.access import default_workspace

    lines = (TEXTS / "en_wide.txt").read_text(encoding="utf-8").splitlines()
    facts = [text for line in lines for text in _FACT.findall(line) if len(text) > 15][:SAVED]
    said = [_FACT.sub(r"\1", line).replace("~", "") for line in lines if "{" in line]
    with running_database():
        person = make_user()
        here, chat = default_workspace(person), make_chat(person)

        def mine(text: str) -> None:
            answer = make_message(chat, "Noted.", "assistant", reply_to=make_message(chat, text))
            row = extraction_jobs.queue_extraction(
                workspace=here, user=person, chat_id=chat.public_id, message_id=answer.public_id,
                source_type="auto_chat", now=timezone.now(),
            )  # fmt: skip
            begun = time.perf_counter()
            outcome = extraction_jobs.extract(row.pk, now=timezone.now())
            times["extraction"].append((time.perf_counter() - begun) * 1000)
            assert outcome.startswith("stored"), outcome

        times: dict[str, list[float]] = {part: [] for part in PARTS}
        memory = [_resident()]
        times["save"] = _timed(
            facts, lambda text: save_memory(Draft(text, here, person), by=person, now=timezone.now())
        )
        memory.append(_resident())
        questions = [f"What do you know about this: {text}?" for text in facts[:ASKED]]
        times["recall"] = _timed(
            questions, lambda text: recall(text, here, person, now=timezone.now(), policy=REACH)
        )
        memory.append(_resident())
        for text in said[-MINED:]:
            mine(text)
        memory.append(_resident())
    return {"times": {part: found[WARM:] for part, found in times.items()}, "memory": memory}


def _timed(texts: Sequence[str], do: Callable[[str], Any]) -> list[float]:
    found = []
    for text in texts:
        begun = time.perf_counter()
        do(text)
        found.append((time.perf_counter() - begun) * 1000)
    return found


def _resident() -> float:
    import psutil

    resident: int = psutil.Process().memory_info().rss
    return resident / 1e6


if __name__ == "__main__":
    main()
