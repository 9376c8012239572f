"""Changes by the directory to accounts: make, change, close and reopen. Each is in the audit log, without a person."""

from __future__ import annotations

from datetime import datetime

from allauth.account.models import EmailAddress
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction

from workspaces.accounts.closing import close_account, reopen_account
from workspaces.accounts.usernames import ALIKE
from workspaces.audit import Verb, record
from workspaces.models import User
from workspaces.scim.errors import ScimError
from workspaces.scim.reading import Values

TAKEN = (
    "An account of another userName has this address, verified. Give that account this userName, or take the address "
    "from it, in the admin."
)


def make_account(values: Values, *, now: datetime) -> User:
    """Without a password: single sign-on opens it for whom the provider verifies the same address of."""
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
    """Change an account. Of superusers only closing: the token's user must not become one."""
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
    """The directory knows whose address it is; no other is theirs any more."""
    theirs = EmailAddress.objects.filter(user=person)
    theirs.exclude(email__iexact=person.email).delete()
    if person.email:
        verified = {"primary": True, "verified": True}
        theirs.update_or_create(user=person, email=person.email.lower(), defaults=verified)
