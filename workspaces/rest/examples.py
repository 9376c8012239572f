"""Examples for the OpenAPI schema: made from the fields, so that none of them can go out of date.

A serializer says in ``example`` what its type alone does not tell, such as a name. Of a request body only what must
be sent and what ``example`` names is shown.
"""

from __future__ import annotations

from typing import Any

MOMENT = "2026-03-07T10:30:00.000000Z"
ID = "7hQx2TzB8mYw1RsX9vLcHn4E"
# The beginning of an id, where it is not the word before ``_id`` itself.
PREFIXES = {
    "workspace": "ws",
    "template": "rtp",
    "prompt": "prm",
    "memory": "mem",
    "message": "msg",
    "connection": "conn",
}
BY_TYPE = {"string": "…", "integer": 1, "number": 0.5, "boolean": False, "object": {}}


def add_examples(result: dict[str, Any], generator: Any, **options: Any) -> dict[str, Any]:
    """A postprocessing hook of spectacular: every body and answer that has no example yet gets one."""
    kinds = {
        component.name: component.object
        for component in generator.registry._components.values()
        if component.type == component.SCHEMA
    }
    made = _Examples(result["components"]["schemas"], kinds)
    for methods in result["paths"].values():
        for operation in methods.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                content.setdefault("examples", {"Example": {"value": made.of(content["schema"], sent=True)}})
            for answer in operation["responses"].values():
                for content in answer.get("content", {}).values():
                    content.setdefault("examples", {"Example": {"value": made.of(content["schema"])}})
    return result


class _Examples:
    def __init__(self, schemas: dict[str, Any], kinds: dict[str, Any]) -> None:
        self._schemas, self._kinds = schemas, kinds

    def of(self, schema: dict[str, Any], name: str = "", *, sent: bool = False) -> Any:
        """A value that fits the schema; ``name`` is that of its field."""
        if "$ref" in schema:
            return self._of_component(schema["$ref"].split("/")[-1], name, sent=sent)
        for several in ("allOf", "oneOf", "anyOf"):
            if several in schema and "properties" not in schema:
                nullable = any(part.get("type") == "null" for part in schema[several])
                return None if nullable else self.of(schema[several][0], name)
        if "default" in schema or "enum" in schema:
            return schema.get("default", schema.get("enum", [None])[0])
        if schema.get("format") == "date-time" and schema["type"] == "string":
            return MOMENT
        if schema.get("format") == "binary":
            return "(its bytes)"
        return self._of_type(schema, name)

    def _of_type(self, schema: dict[str, Any], name: str) -> Any:
        kind = schema.get("type", "object")
        if kind == "array":
            return [self.of(schema["items"], name.removesuffix("s"))] * schema.get("minItems", 1)
        if "properties" in schema:
            return {field: self.of(part, field) for field, part in schema["properties"].items()}
        if isinstance(kind, list):
            return None
        if kind == "string" and schema.get("pattern", "").startswith("^("):
            return schema["pattern"][2:].split("|")[0]
        if kind == "string" and name.lower().endswith("id"):
            what = name[:-2].rstrip("_")
            return f"{PREFIXES.get(what, what)}_{ID}"
        return schema.get("minimum", BY_TYPE[kind])

    def _of_component(self, name: str, field: str, *, sent: bool) -> Any:
        schema, known = self._schemas[name], getattr(self._kinds.get(name), "example", {})
        if sent:
            wanted = {*schema.get("required", ()), *known} or {*list(schema["properties"])[:1]}
            properties = {each: part for each, part in schema["properties"].items() if each in wanted}
            schema = {**schema, "properties": properties}
        value = self.of({key: part for key, part in schema.items() if key != "anyOf"}, field)
        return _with_known(value, known) if known else value


def _with_known(value: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The fields of ``value``, as far as ``known`` says otherwise by that."""
    return {name: _either(made, known.get(name, made)) for name, made in value.items()}


def _either(made: Any, known: Any) -> Any:
    return {**made, **known} if isinstance(made, dict) and isinstance(known, dict) else known
