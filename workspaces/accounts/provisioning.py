"""Account and group changes by the directory (SCIM). The audit log records them without an acting user."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, connection, transaction

from memoryhub.ids import PATTERN
from workspaces.accounts.account_changes import close_account, reopen_account
from workspaces.accounts.single_sign_on import apply_groups, of_directory
from workspaces.audit import Verb, record
from workspaces.models import DirectoryGroup, User
from workspaces.models.users import ALIKE

TAKEN = (
    "An account of another userName has this address, verified. Give that account this userName, or take the address "
    "from it, in the admin."
)


def make_account(values: Values, *, now: datetime) -> User:
    """Create an account without a password. The person signs in by single sign-on with the same verified address."""
    if "username" not in values:
        raise ScimError(400, "userName is required.", "invalidValue")
    with transaction.atomic():
        if User.objects.filter(username__iexact=values["username"]).exists():
            raise ScimError(409, "There is a user of this name.", "uniqueness")
        person = User(username=values["username"])
        person.set_unusable_password()
        _save(person, values)
        record(Verb.ACCOUNT_MADE, by=None, target=person.public_id)
        if not values["active"]:
            close_account(person, by=None, now=now)
    return person


def change_account(person: User, values: Values, *, now: datetime) -> User:
    """Change an account's fields to ``values``, which come from the directory; close or reopen it. Return the account.

    Raises ScimError for any change of a superuser's account except closing it: a directory that could set its user name
    or email address could take it over. The last open superuser's account cannot be closed.
    """
    with transaction.atomic():
        person = User.objects.select_for_update(of=("self",), no_key=True).get(pk=person.pk)
        if any(getattr(person, name) != value for name, value in values.items() if name != "active"):
            if person.is_superuser:
                raise ScimError(403, "Superusers are changed in the admin alone; they can be deactivated.")
            _save(person, values)
        if values.get("active") is False and person.is_active:
            _require_another_superuser(person)
            close_account(person, by=None, now=now)
        elif values.get("active") is True and not person.is_active:
            if person.is_superuser:
                raise ScimError(403, "Superusers are reopened in the admin alone.")
            reopen_account(person, by=None)
    return person


def _require_another_superuser(person: User) -> None:
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=person.pk)
    if person.is_superuser and not others.exists():
        raise ScimError(403, "This is the only superuser whose account is open.")


def _save(person: User, values: Values) -> None:
    named, before = person.username, person.email
    for name in ("username", "first_name", "last_name", "email"):
        setattr(person, name, values.get(name, getattr(person, name)))
    try:
        if person.email:
            validate_email(person.email)
        User._meta.get_field("username").run_validators(person.username)
        with transaction.atomic():
            person.save()
    except ValidationError as error:
        alike = str(ALIKE) in error.messages
        raise ScimError(
            409 if alike else 400, error.messages[0], "uniqueness" if alike else "invalidValue"
        ) from None
    except IntegrityError:
        raise ScimError(409, "There is a user of this name.", "uniqueness") from None
    if person.username != named:
        record(Verb.USERNAME_CHANGED, by=None, target=person.public_id)
    if person.email != before:
        record(Verb.EMAIL_CHANGED, by=None, target=person.public_id)
        try:
            with transaction.atomic():
                _verify(person)
        except IntegrityError:
            raise ScimError(409, TAKEN, "uniqueness") from None


def _verify(person: User) -> None:
    """Mark the user's email address as verified, and delete their other addresses."""
    theirs = EmailAddress.objects.filter(user=person)
    theirs.exclude(email__iexact=person.email).delete()
    if person.email:
        verified = {"primary": True, "verified": True}
        theirs.update_or_create(user=person, email=person.email.lower(), defaults=verified)


# Changes by the directory to groups, which also change the members' rights in workspaces.

_LOCK = 7_640_031  # serializes changes: two groups may share members and grant the same workspaces


def group_with(public_id: str) -> DirectoryGroup:
    group = (
        DirectoryGroup.objects.filter(public_id=public_id).first() if PATTERN.fullmatch(public_id) else None
    )
    if group is None:
        raise ScimError(404, "There is no such group.")
    return group


def make_group(wanted: Group) -> DirectoryGroup:
    with transaction.atomic():
        _lock()
        return _put(DirectoryGroup(), Group(), wanted)


def change_group(public_id: str, change: Callable[[Group], Group | None]) -> None:
    """Replace a group by the one that ``change`` returns for it, or delete it if ``change`` returns None.

    The members' rights are updated in the same transaction, so that a failed request can be repeated.
    """
    with transaction.atomic():
        _lock()
        group = group_with(public_id)
        members = group.members.values_list("public_id", flat=True)
        before = Group(group.name, group.external_id, frozenset(members))
        wanted = change(before)
        if wanted is not None:
            _put(group, before, wanted)
        else:
            group.delete()
            _update_rights(before, Group())


def _put(group: DirectoryGroup, before: Group, wanted: Group) -> DirectoryGroup:
    if not wanted.name:
        raise ScimError(400, "displayName is required.", "invalidValue")
    if DirectoryGroup.objects.filter(name__iexact=wanted.name).exclude(pk=group.pk).exists():
        raise ScimError(409, "There is a group of this name.", "uniqueness")
    group.name, group.external_id = wanted.name, wanted.external_id
    group.save()
    group.members.remove(*_people(before.members - wanted.members))
    come = _people(wanted.members - before.members)
    if len(come) < len(wanted.members - before.members):
        raise ScimError(400, "There is no such user among the members.", "invalidValue")
    group.members.add(*come)
    _update_rights(before, wanted)
    return group


def _update_rights(before: Group, now: Group) -> None:
    """Update the rights of people who joined or left the group, or of all members if it was renamed."""
    if not {before.name, now.name} & settings.SSO_GROUPS.keys():
        return
    changed = before.members ^ now.members if before.name == now.name else before.members | now.members
    for person in _people(changed):
        apply_groups(person, of_directory(person))


def _people(public_ids: frozenset[str]) -> list[User]:
    return list(User.objects.filter(public_id__in=public_ids).order_by("pk"))


def _lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


# Parsing of SCIM requests, without access to the database.

CORE = "urn:ietf:params:scim:schemas:core:2.0:user:"
GROUP_CORE = "urn:ietf:params:scim:schemas:core:2.0:group:"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
MOST_OPERATIONS = 100
LENGTHS = {"username": 150, "first_name": 150, "last_name": 150, "email": 254, "group": 256}
_NAMES = {"name.givenname": "first_name", "name.familyname": "last_name", "username": "username"}
# Attributes of RFC 7643 that our accounts do not have: accepted and not stored.
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
    """A SCIM group. ``members`` holds public ids of users."""

    name: str = ""
    external_id: str = ""
    members: frozenset[str] = frozenset()


def values_of(resource: Mapping[str, Any]) -> Values:
    """Return an account's fields from a complete SCIM user resource, as sent by POST and PUT.

    Missing attributes become empty. A missing ``active`` becomes True.
    """
    values: Values = {"first_name": "", "last_name": "", "email": "", "active": True}
    for name, value in resource.items():
        values |= _attribute(name.lower(), value)
    return values


def changes_of(body: Mapping[str, Any]) -> Values:
    """Return the values that a PATCH changes. If several operations set an attribute, the last one wins."""
    changes: Values = {}
    for kind, path, value in _operations(body):
        if kind == "remove":
            value = [] if path.lower() == "emails" else {} if path.lower() == "name" else ""
        for name, each in [(path, value)] if path else value.items():
            changes |= _attribute(str(name).lower(), each)
    return changes


def group_of(resource: Mapping[str, Any]) -> Group:
    """Return the group in a complete SCIM resource, as sent by POST and PUT."""
    group = Group()
    for name, value in resource.items():
        group = _of_group(group, "replace", name, value)
    return group


def group_after(group: Group, body: Mapping[str, Any]) -> Group:
    """Return the group as a SCIM PATCH request with this body would change it. Saves nothing."""
    for kind, path, value in _operations(body):
        for name, each in [(path, value)] if path else value.items():
            group = _of_group(group, kind, str(name), each)
    return group


def filter_value(text: str, attribute: str) -> str | None:
    """Return the value in the SCIM filter ``attribute eq "…"``, or None for an empty filter.

    Raises ScimError for any other filter.
    """
    if not text:
        return None
    match = _FILTER.fullmatch(text[:1000])
    if match is None or match[1].lower() != attribute.lower():
        raise ScimError(400, f'The only filter here is {attribute} eq "…".', "invalidFilter")
    return re.sub(r"\\(.)", r"\1", match[2])


def _operations(body: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the type, path and value of each operation of a PATCH.

    If the path is empty, the value is an object with attributes.
    """
    if body.get("schemas") not in (None, [PATCH]):
        raise ScimError(400, "schemas must name the PatchOp message.", "invalidSyntax")
    operations = {name.lower(): value for name, value in body.items()}.get("operations")
    if not isinstance(operations, list) or not 1 <= len(operations) <= MOST_OPERATIONS:
        raise ScimError(400, f"Operations must be a list of 1 to {MOST_OPERATIONS}.", "invalidSyntax")
    for operation in operations:
        if not isinstance(operation, Mapping):
            raise ScimError(400, "Each operation must be an object.", "invalidSyntax")
        fields = {str(name).lower(): value for name, value in operation.items()}
        kind, path, value = fields.get("op"), fields.get("path"), fields.get("value")
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
    members = [value] if isinstance(value, Mapping) else value
    if not isinstance(members, list) or not all(
        isinstance(each, Mapping) and isinstance(each.get("value"), str) for each in members
    ):
        raise ScimError(400, "members must be a list of objects with a value.", "invalidValue")
    named = frozenset(each["value"].replace("\x00", "") for each in members)
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
    """Return the primary email address in a SCIM attribute, or the first one if none is primary."""
    if not isinstance(value, list):
        return value or ""
    if not all(isinstance(each, Mapping) for each in value):
        raise ScimError(400, "emails must be a list of objects.", "invalidValue")
    primary = [each for each in value if each.get("primary") is True]
    return next((each.get("value") for each in [*primary, *value]), "")


def _flag(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):  # Entra ID sends a string
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise ScimError(400, "active must be true or false.", "invalidValue")
    return value


def _text(name: str, field: str, value: Any) -> str:
    wrong = not isinstance(value, str) or len(value) > LENGTHS[field] or _CONTROL.search(value)
    if wrong or (field == "username" and not value.strip()):
        raise ScimError(400, f"{name} must be a text of at most {LENGTHS[field]} characters.", "invalidValue")
    return str(value).strip()


class ScimError(Exception):
    """An error response of the SCIM API (RFC 7644, section 3.12). ``kind`` is its ``scimType``."""

    def __init__(self, status: int, detail: str, kind: str = "") -> None:
        super().__init__(detail)
        self.status, self.detail, self.kind = status, detail, kind
