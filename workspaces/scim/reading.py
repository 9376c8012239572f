"""Reading of a directory's request, as far as an account here has its fields. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from workspaces.scim.errors import ScimError

CORE = "urn:ietf:params:scim:schemas:core:2.0:user:"
GROUP_CORE = "urn:ietf:params:scim:schemas:core:2.0:group:"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
MOST_OPERATIONS = 100
LENGTHS = {"username": 150, "first_name": 150, "last_name": 150, "email": 254, "group": 256}
_NAMES = {"name.givenname": "first_name", "name.familyname": "last_name", "username": "username"}
# Attributes of RFC 7643 that no account here has: they are taken and not kept.
_UNKEPT = re.compile(
    r"(schemas|id|meta|externalid|displayname|nickname|profileurl|title|usertype|preferredlanguage|locale|timezone"
    r"|password|phonenumbers|ims|photos|addresses|groups|entitlements|roles|x509certificates|name\.\w+"
    r"|urn:ietf:params:scim:schemas:extension:.+)(\[.*\])?(\..+)?"
)
_EMAIL = re.compile(r"emails(\[(type eq \"work\"|primary eq true)\])?(\.value)?", re.IGNORECASE)
_FILTER = re.compile(r'\s*(\w+)\s+eq\s+"((?:[^"\\]|\\.)*)"\s*', re.IGNORECASE)
_MEMBERS = re.compile(r'members(\[value eq "(\w+)"\])?', re.IGNORECASE)

_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")

Values = dict[str, Any]  # of an account: username, first_name, last_name, email, active


@dataclass(frozen=True)
class Group:
    """``members`` are public ids of people."""

    name: str = ""
    external_id: str = ""
    members: frozenset[str] = frozenset()


def values_of(resource: Mapping[str, Any]) -> Values:
    """Return the values of a whole resource, as it is made or replaced: what it leaves out is empty, and active."""
    found: Values = {"first_name": "", "last_name": "", "email": "", "active": True}
    for name, value in resource.items():
        found |= _attribute(name.lower(), value)
    return found


def changes_of(body: Mapping[str, Any]) -> Values:
    """Return the values of a PATCH: its operations in their order, the last one for each attribute."""
    found: Values = {}
    for kind, path, value in _operations(body):
        if kind == "remove":
            value = [] if path.lower() == "emails" else {} if path.lower() == "name" else ""
        for name, each in [(path, value)] if path else value.items():
            found |= _attribute(str(name).lower(), each)
    return found


def group_of(resource: Mapping[str, Any]) -> Group:
    """Return the group of a whole resource, as it is made or replaced."""
    found = Group()
    for name, value in resource.items():
        found = _of_group(found, "replace", name, value)
    return found


def group_after(group: Group, body: Mapping[str, Any]) -> Group:
    """Return the group after a PATCH."""
    for kind, path, value in _operations(body):
        for name, each in [(path, value)] if path else value.items():
            group = _of_group(group, kind, str(name), each)
    return group


def asked_for(text: str, attribute: str) -> str | None:
    """Return the value of a filter ``attribute eq "…"``; None without one."""
    if not text:
        return None
    match = _FILTER.fullmatch(text[:1000])
    if match is None or match[1].lower() != attribute.lower():
        raise ScimError(400, f'The only filter here is {attribute} eq "…".', "invalidFilter")
    return re.sub(r"\\(.)", r"\1", match[2])


def _operations(body: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield kind, path and value of each operation of a PATCH; without a path the value is an object."""
    if body.get("schemas") not in (None, [PATCH]):
        raise ScimError(400, "schemas must name the PatchOp message.", "invalidSyntax")
    operations = {name.lower(): value for name, value in body.items()}.get("operations")
    if not isinstance(operations, list) or not 1 <= len(operations) <= MOST_OPERATIONS:
        raise ScimError(400, f"Operations must be a list of 1 to {MOST_OPERATIONS}.", "invalidSyntax")
    for operation in operations:
        if not isinstance(operation, Mapping):
            raise ScimError(400, "Each operation must be an object.", "invalidSyntax")
        said = {str(name).lower(): value for name, value in operation.items()}
        kind, path, value = said.get("op"), said.get("path"), said.get("value")
        if not isinstance(kind, str) or kind.lower() not in ("add", "replace", "remove"):
            raise ScimError(400, "op must be add, replace or remove.", "invalidSyntax")
        if path is not None and not isinstance(path, str):
            raise ScimError(400, "path must be a string.", "invalidPath")
        if not path and kind.lower() == "remove":
            raise ScimError(400, "What is to be removed needs a path.", "noTarget")
        if not path and not isinstance(value, Mapping):
            raise ScimError(400, "Without a path value must be an object.", "invalidValue")
        yield kind.lower(), path or "", value


def _of_group(group: Group, kind: str, name: str, value: Any) -> Group:
    name = name[len(GROUP_CORE) :] if name.lower().startswith(GROUP_CORE) else name
    if members := _MEMBERS.fullmatch(name):
        return replace(group, members=_members(group.members, kind, members[2], value))
    if name.lower() == "displayname":
        return replace(group, name=_text(name, "group", value))
    if name.lower() == "externalid":
        return replace(group, external_id=_text(name, "group", value or ""))
    if name.lower() in ("schemas", "id", "meta"):
        return group
    raise ScimError(400, "There is no such attribute of a group.", "invalidPath")


def _members(before: frozenset[str], kind: str, one: str | None, value: Any) -> frozenset[str]:
    if one:
        if kind != "remove":
            raise ScimError(400, "A filter of members is for removing them.", "invalidPath")
        return before - {one}
    if kind == "remove" and value is None:
        return frozenset()
    said = [value] if isinstance(value, Mapping) else value
    if not isinstance(said, list) or not all(
        isinstance(each, Mapping) and isinstance(each.get("value"), str) for each in said
    ):
        raise ScimError(400, "members must be a list of objects with a value.", "invalidValue")
    named = frozenset(each["value"].replace("\x00", "") for each in said)
    return before - named if kind == "remove" else named if kind == "replace" else before | named


def _attribute(name: str, value: Any) -> Values:
    name = name.removeprefix(CORE)
    if name == "active":
        return {"active": _flag(value)}
    if name in _NAMES:
        return {_NAMES[name]: _text(name, _NAMES[name], value)}
    if name == "name":
        if not isinstance(value, Mapping):
            raise ScimError(400, "name must be an object.", "invalidValue")
        parts = {str(part).lower(): each for part, each in value.items()}
        return {
            field: _text(part, field, parts.get(part.removeprefix("name.")) or "")
            for part, field in _NAMES.items()
            if part.startswith("name.")
        }
    if _EMAIL.fullmatch(name):
        return {"email": _text("emails", "email", _first_email(value))}
    if _UNKEPT.fullmatch(name):
        return {}
    raise ScimError(400, "There is no such attribute of a user.", "invalidPath")


def _first_email(value: Any) -> Any:
    """The primary one, else the first."""
    if not isinstance(value, list):
        return value or ""
    if not all(isinstance(each, Mapping) for each in value):
        raise ScimError(400, "emails must be a list of objects.", "invalidValue")
    primary = [each for each in value if each.get("primary") is True]
    return next((each.get("value") for each in [*primary, *value]), "")


def _flag(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):  # as Entra ID says it
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise ScimError(400, "active must be true or false.", "invalidValue")
    return value


def _text(name: str, field: str, value: Any) -> str:
    wrong = not isinstance(value, str) or len(value) > LENGTHS[field] or _CONTROL.search(value)
    if wrong or (field == "username" and not value.strip()):
        raise ScimError(400, f"{name} must be a text of at most {LENGTHS[field]} characters.", "invalidValue")
    return str(value).strip()
