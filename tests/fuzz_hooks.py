"""Hooks for schemathesis that make requests valid beyond their schema, for a test here and for its command."""

from itertools import count
from typing import Any

import schemathesis

from memories.judging.secret_filter import find_secret

CHOSEN = ("agent_id", "agentId", "connection_id")  # only the id of an existing, available row is valid
OF_RUNS = (
    "tools",
    "plan",
    "budget",
    "inputs",
    "from_step",
)  # whose formats and names only the domain checks

NUMBERS = count(1)


def make_right(case: Any) -> None:
    """Change a request that fits the schema into one that fits the stored data."""
    case.query.pop("cursor", None)  # opaque: only one from an earlier answer is valid
    for name in CHOSEN:
        case.query.pop(name, None)
    if case.query.get("scope") == "agent":  # requires an assistant of the workspace
        case.query["scope"] = "global" if case.path.startswith("/api/v1/") else "workspace"
    if not str(case.query.get("tag", "a tag")).strip():
        del case.query["tag"]
    if isinstance(case.body, dict):
        chosen = [name for name in CHOSEN if name in case.body]
        for name in chosen:
            del case.body[name]
        if chosen and not case.body:  # a PATCH without a change is refused, so choose none explicitly
            case.body[chosen[0]] = None
        if case.body.get("scope") == "agent":
            del case.body["scope"]
        for name in ("content", "summary", "key", "category", "tags", "text"):
            said = case.body.get(name)
            if find_secret("\n".join(map(str, said)) if isinstance(said, list) else str(said or "")):
                case.body[name] = ["plain"] if isinstance(said, list) else "plain"
        if isinstance(tags := case.body.get("tags"), list):
            # With the stored text beside it any tag may look like a credential's value.
            case.body["tags"] = ["plain" if find_secret(f"password: {tag}") else tag for tag in tags]
        if (
            case.body.get("key") and "content" not in case.body
        ):  # with the stored text it may look like a credential
            case.body["key"] = "plain"
        for name in (*OF_RUNS, "documents"):  # of this workspace
            case.body.pop(name, None)
        if "username" in case.body:
            case.body["username"] = "sam"
        if case.path.endswith("/template") and "name" in case.body:  # unique in the workspace
            case.body["name"] = f"Compared {next(NUMBERS)}"


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    if case.meta is None or case.meta.generation.mode == schemathesis.GenerationMode.POSITIVE:
        make_right(case)
