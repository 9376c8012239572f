"""The client's calls and types match the OpenAPI schema, so that neither changes alone."""

import inspect
import sys
from collections.abc import Callable
from copy import deepcopy
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import pytest

from memoryhub_client import types
from memoryhub_client.calls import Calls
from memoryhub_client.running import _Method
from tests.api import openapi_schema

METHODS = {name: made for name, made in vars(Calls).items() if isinstance(made, _Method)}
KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
Schema = dict[str, Any]


@pytest.fixture(scope="module")
def schema() -> Schema:
    return openapi_schema()


class SchemaComparison:
    """The differences between the client and a schema, each as a sentence."""

    def __init__(self, schema: Schema) -> None:
        self.components = schema["components"]["schemas"]
        self.operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in schema["paths"].items()
            for method, operation in methods.items()
        }

    def whole(self, part: Schema) -> Schema:
        """Resolve a reference, and an ``allOf`` of one, by which the schema adds a description to a reference."""
        while "$ref" in part or len(part.get("allOf", [])) == 1:
            part = self.components[part["$ref"].split("/")[-1]] if "$ref" in part else part["allOf"][0]
        return part

    def kinds(self, part: Schema) -> set[str]:
        """Return ``string``, ``null``, ``=owner`` of an enumeration, …; a schema without a type allows anything."""
        part = self.whole(part)
        if "enum" in part:
            return {f"={value}" if value is not None else "null" for value in part["enum"]}
        if "properties" not in part and (choices := part.get("oneOf") or part.get("anyOf")):
            return {kind for choice in choices for kind in self.kinds(choice)}
        found = part.get("type", "anything")
        return set(found) if isinstance(found, list) else {found}

    def choice(self, part: Schema, kind: str) -> Schema:
        """Return the alternative of this kind."""
        part = self.whole(part)
        if "properties" in part:
            return part
        found = (choice for choice in part.get("oneOf", []) if kind in self.kinds(choice))
        return self.choice(next(found), kind) if "oneOf" in part else part

    def of_type(self, hint: Any, part: Schema, place: str, *, sent: bool = False) -> list[str]:
        """Compare a type with a schema.

        If ``sent``, the schema must accept everything the type allows; otherwise the type must allow everything the
        schema does.
        """
        if hint is Any:
            return []
        alternatives = alternatives_of(hint)
        ours, theirs = {kind for each in alternatives for kind in kinds_of(each)}, self.kinds(part)
        wide, narrow = (theirs, ours) if sent else (ours, theirs)
        if beyond := [kind for kind in narrow if not covers(wide, kind)]:
            return [f"{place}: {sorted(beyond)} beside {sorted(wide)}"]
        found = []
        for each in alternatives:
            if is_typeddict(each) or get_origin(each) is types.Page:
                found += self.of_fields(each, self.choice(part, "object"), place)
            elif get_origin(each) is list:
                found += self.of_type(
                    get_args(each)[0], self.choice(part, "array")["items"], place, sent=sent
                )
            elif get_origin(each) is dict:
                values = self.choice(part, "object")["additionalProperties"]
                found += self.of_type(get_args(each)[1], values, place, sent=sent)
        return found

    def of_fields(self, made: Any, part: Schema, place: str) -> list[str]:
        theirs, required = part["properties"], part.get("required", [])
        found = []
        for name, (hint, always) in fields_of(made).items():
            if name not in theirs:
                found.append(f"{place}.{name} is not in the schema")
            elif always and name not in required:
                found.append(f"{place}.{name} may be missing")
            else:
                found += self.of_type(hint, theirs[name], f"{place}.{name}")
        return found

    def of_method(self, name: str) -> list[str]:
        given, bodies = arguments(METHODS[name])
        call, returns = METHODS[name].make(None, **given), METHODS[name].make.__annotations__["return"]
        if call.operation not in self.operations:
            return [f"{name}: no operation {call.operation}"]
        method, path, operation = self.operations[call.operation]
        found = [] if (call.method, call.path) == (method, path) else [f"{name} is {method} {path} now"]
        parameters = {(each["in"], each["name"]): each for each in operation.get("parameters", [])}
        sent = [("path", each) for each in call.ids] + [("query", each) for each in call.query]
        sent += [("header", each) for each in call.headers]
        found += [f"{name}: no parameter {each}" for each in sent if each not in parameters]
        # Every operation that accepts an idempotency key must send one: without it no retry is safe.
        needed = [
            each for each, said in parameters.items() if said.get("required") or "Idempotency-Key" in each
        ]
        found += [f"{name}: {each} is not sent" for each in needed if each not in sent]
        found += self.of_body(name, call, operation, bodies)
        return found + self.of_answer(name, call, operation, get_args(evaluated(returns))[0])

    def of_body(self, name: str, call: Any, operation: Schema, bodies: list[Any]) -> list[str]:
        contents = operation.get("requestBody", {}).get("content", {})
        kind = "multipart/form-data" if call.file else "application/json"
        fields = {"file"} if call.file else set(call.body or {})
        if not fields:
            return (
                [f"{name}: a body is asked for"] if operation.get("requestBody", {}).get("required") else []
            )
        part = self.whole(contents[kind]["schema"])
        found = [f"{name}: {field} is not taken" for field in fields - set(part["properties"])]
        found += [f"{name}: {field} has to be sent" for field in set(part.get("required", [])) - fields]
        for body in bodies:
            for field, (hint, must) in fields_of(body).items():
                if must != (field in part.get("required", [])) or field not in part["properties"]:
                    found.append(
                        f"{name}: {field} is {'' if must else 'not '}required here alone, or unknown"
                    )
                else:
                    found += self.of_type(hint, part["properties"][field], f"{name}.{field}", sent=True)
        return found

    def of_answer(self, name: str, call: Any, operation: Schema, hint: Any) -> list[str]:
        good = [said for code, said in operation["responses"].items() if code.startswith("2")]
        if call.header:
            return [f"{name}: no header"] * any(call.header not in said.get("headers", {}) for said in good)
        contents = [content["schema"] for said in good for content in said.get("content", {}).values()]
        if hint is NoneType or not contents:
            return [f"{name}: what is answered?"] if contents or hint is not NoneType else []
        # A turn is answered by events or complete: the method matches one of the two.
        return min((self.of_type(hint, content, name) for content in contents), key=len)


def evaluated(annotation: str) -> Any:
    """Evaluate the annotation ``Call[…]`` of a method, with the names of ``calls.py``."""
    return eval(annotation, vars(sys.modules[Calls.__module__]))


def arguments(method: Any) -> tuple[dict[str, Any], list[Any]]:
    """Return a value for every argument, and the types of the ``**`` arguments."""
    given: dict[str, Any] = {}
    bodies = []
    for name, parameter in list(inspect.signature(method.make).parameters.items())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            bodies.append(get_args(evaluated(parameter.annotation))[0])
            given |= dict.fromkeys(get_type_hints(bodies[-1]), "x")
        else:
            given[name] = "x"
    return given, bodies


def alternatives_of(hint: Any) -> list[Any]:
    return list(get_args(hint)) if get_origin(hint) in (Union, UnionType) else [hint]


def kinds_of(hint: Any) -> set[str]:
    if get_origin(hint) is Literal:
        return {f"={value}" for value in get_args(hint)}
    if is_typeddict(hint) or get_origin(hint) in (dict, types.Page):
        return {"object"}
    return {"array"} if get_origin(hint) is list else {KINDS[hint]}


def covers(wide: set[str], kind: str) -> bool:
    wider = {"integer": "number"}.get(kind, "string" if kind.startswith("=") else kind)
    return bool(wide & {kind, wider, "anything"})


def fields_of(made: Any) -> dict[str, tuple[Any, bool]]:
    """Return each field's type and whether it is required."""
    base = get_origin(made) or made
    found = {}
    for name, hint in get_type_hints(base, include_extras=True).items():
        said = get_origin(hint)
        inner = get_args(hint)[0] if said in (Required, NotRequired) else hint
        if get_args(made) and get_origin(inner) is list:  # a page of these items
            inner = inner[get_args(made)[0]]
        found[name] = (inner, said is Required or (base.__total__ and said is not NotRequired))
    return found


def test_requests_and_responses_of_the_client_match_the_schema(schema: Schema) -> None:
    comparison = SchemaComparison(schema)
    assert METHODS
    assert [difference for name in METHODS for difference in comparison.of_method(name)] == []


def renamed(component: str, old: str) -> Callable[[Schema], None]:
    def change(schema: Schema) -> None:
        part = schema["components"]["schemas"][component]
        part["properties"]["renamed"] = part["properties"].pop(old)
        part["required"] = ["renamed" if name == old else name for name in part.get("required", [])]

    return change


def put(*place: str, value: Any) -> Callable[[Schema], None]:
    def change(schema: Schema) -> None:
        part = schema
        for step in place[:-1]:
            part = part[step]
        part[place[-1]] = value

    return change


def moved(schema: Schema) -> None:
    schema["paths"]["/chat/api/threads"] = schema["paths"].pop("/chat/api/chats")


PARTS = ("components", "schemas")
CHANGES: dict[str, tuple[str, Callable[[Schema], None]]] = {
    "a field of an answer": ("memory", renamed("MemoryJson", "content")),
    "a field deep in a list": ("chats", renamed("PersonJson", "username")),
    "a field of a page": ("memories", renamed("MemoryPage", "next_cursor")),
    "a field of a body": ("save_memory", renamed("MemoryBody", "tags")),
    "a field that has to be sent": ("recall", put(*PARTS, "RecallBody", "required", value=["query", "why"])),
    "a type": ("memory", put(*PARTS, "MemoryJson", "properties", "importance", value={"type": "string"})),
    "null": ("memory", put(*PARTS, "MemoryJson", "properties", "content", "type", value=["string", "null"])),
    "one more of a few": ("documents", put(*PARTS, "DocumentStatusEnum", "enum", value=["lost", "ready"])),
    "one fewer to send": ("create_key", put(*PARTS, "KeyScopeEnum", "enum", value=["read"])),
    "a path": ("create_chat", moved),
    "what a query takes": ("api_keys", put("paths", "/chat/api/keys", "get", "parameters", value=[])),
    "no more of an operation": ("revoke_key", put("paths", "/chat/api/keys/{key_id}", value={})),
}


def test_comparison_detects_changes_of_the_schema(schema: Schema) -> None:
    for change, (name, make) in CHANGES.items():
        make(other := deepcopy(schema))
        assert SchemaComparison(other).of_method(name) != [], change


def test_client_sends_an_idempotency_key_wherever_one_is_accepted(schema: Schema) -> None:
    drift = SchemaComparison(schema)
    for name, made in METHODS.items():
        call = made.make(None, **arguments(made)[0])
        takes = drift.operations[call.operation][2].get("parameters", [])
        assert bool(call.once) == any(each["name"] == "Idempotency-Key" for each in takes), name
