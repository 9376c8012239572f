"""Django's changepassword command, which here ends the person's sessions too."""

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.db import transaction
from django.utils import timezone

from workspaces.accounts import program_authorizations, sessions
from workspaces.audit import Verb, record
from workspaces.models import User


class Command(changepassword.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        output: str | None = super().handle(*args, **options)
        person = User.objects.get(username=options["username"] or getpass.getuser())
        with transaction.atomic():
            record(Verb.PASSWORD_CHANGED, by=None, target=person.public_id)
            program_authorizations.end_all_of(person, by=person, now=timezone.now())
            sessions.end_other_sessions(person, keep=None, by=person)
        return output
