"""What of a right request no schema can know, for schemathesis: as a test here, and as a command with its hooks."""

from __future__ import annotations

from itertools import count
from typing import Any

import schemathesis

from memories.judging.secret_filter import find_secret

CHOSEN = ("agent_id", "agentId", "connection_id")  # only one that is there, and may be chosen there, is right
OF_RUNS = (
    "tools",
    "plan",
    "budget",
    "inputs",
    "from_step",
)  # whose right forms and names the domain knows alone

NUMBERS = count(1)


def make_right(case: Any) -> None:
    """A request that fits the schema becomes one that fits what is there."""
    case.query.pop("cursor", None)  # opaque: only one that was handed out is right
    for name in CHOSEN:
        case.query.pop(name, None)
    if case.query.get("scope") == "agent":  # needs one of the workspace's assistants beside it
        case.query["scope"] = "workspace"
    if isinstance(case.body, dict):
        chosen = [name for name in CHOSEN if name in case.body]
        for name in chosen:
            del case.body[name]
        if chosen and not case.body:  # a change of nothing is refused: choosing none is one
            case.body[chosen[0]] = None
        if case.body.get("scope") == "agent":
            del case.body["scope"]
        for name in ("content", "summary", "key", "category", "tags", "text"):
            said = case.body.get(name)
            if find_secret("\n".join(map(str, said)) if isinstance(said, list) else str(said or "")):
                case.body[name] = ["plain"] if isinstance(said, list) else "plain"
        if isinstance(tags := case.body.get("tags"), list):
            # Beside a text that is there each tag may look like its value.
            case.body["tags"] = ["plain" if find_secret(f"password: {tag}") else tag for tag in tags]
        if (
            case.body.get("key") and "content" not in case.body
        ):  # with a text that is there it may look like a credential
            case.body["key"] = "plain"
        for name in (*OF_RUNS, "documents"):  # of this workspace
            case.body.pop(name, None)
        if "username" in case.body:
            case.body["username"] = "sam"
        if case.path.endswith("/template") and "name" in case.body:  # no other of the workspace has it
            case.body["name"] = f"Compared {next(NUMBERS)}"


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    if case.meta is None or case.meta.generation.mode == schemathesis.GenerationMode.POSITIVE:
        make_right(case)
