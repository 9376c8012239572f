"""JSON schemas of results, written by people, API clients and models. Only a small, safe part of the standard is
allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema

from chat.runs.memory import as_json_text

LONGEST_SCHEMA = 8_000  # characters
MOST_TROUBLES = 5
# References could load any URL, and patterns could take forever, so neither is allowed.
_PLAIN = {
    "type", "title", "description", "enum", "const", "required", "minimum", "maximum", "minLength", "maxLength",
    "minItems", "maxItems", "additionalProperties",
}  # fmt: skip
_NESTED = {"items"}
_NAMED = {"properties"}
_LISTED = {"anyOf"}


def why_bad_schema(schema: object) -> str:
    """Return the error of a schema, for its author; empty if the schema is valid."""
    try:
        if len(as_json_text(schema)) > LONGEST_SCHEMA:
            return f"may have at most {LONGEST_SCHEMA:,} characters"
        if why := _why(schema):
            return why
        jsonschema.Draft202012Validator.check_schema(schema)
    except (ValueError, TypeError, RecursionError):
        return "is not valid JSON"
    except jsonschema.SchemaError as error:
        return f"is not a JSON schema: {error.message[:200]}"
    return ""


def _why(schema: object) -> str:
    if isinstance(schema, bool):
        return ""
    if not isinstance(schema, Mapping):
        return "must be an object"
    for name, value in schema.items():
        parts: list[object] = []
        if name in _NESTED or (name == "additionalProperties" and isinstance(value, Mapping)):
            parts = [value]
        elif name in _NAMED:
            parts = list(value.values()) if isinstance(value, Mapping) else [value]
        elif name in _LISTED:
            parts = list(value) if isinstance(value, list) else [value]
        elif name not in _PLAIN:
            return f"has “{str(name)[:40]}”, which is not supported here"
        for part in parts:
            if why := _why(part):
                return why
    return ""


def fitted(value: Any, schema: Any) -> Any:
    """Return the value adapted to its schema, if a model came close: an object becomes a list of one, null an empty
    list, a list the only list of an object, a number a string. A string is not made a list, since it may be a word like
    "none".
    """
    if not isinstance(schema, Mapping):
        return value
    kind, inner = schema.get("type"), schema.get("properties") or {}
    if kind == "array":
        many = [value] if isinstance(value, dict) else [] if value is None else value
        return [fitted(each, schema.get("items")) for each in many] if isinstance(many, list) else value
    if kind == "object" and isinstance(value, list):
        lists = [name for name, of in inner.items() if isinstance(of, Mapping) and of.get("type") == "array"]
        value = {lists[0]: value} if len(lists) == 1 else value
    if kind == "object" and isinstance(value, dict):
        return {name: fitted(each, inner.get(name)) for name, each in value.items()}
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def troubles_with(value: object, schema: Mapping[str, Any]) -> str:
    """Return in one line, for the model, where a value does not match the schema; empty if it matches."""
    errors = sorted(jsonschema.Draft202012Validator(schema).iter_errors(value), key=lambda e: e.json_path)
    return "; ".join(f"{error.json_path}: {error.message[:200]}" for error in errors[:MOST_TROUBLES])
