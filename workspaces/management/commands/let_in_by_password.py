"""``manage.py let_in_by_password NAME``: allow an administrator to sign in by password for 15 minutes."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from workspaces.accounts import sign_in
from workspaces.models import User


class Command(BaseCommand):
    help = "Where MEMORYHUB_PASSWORD_SIGN_IN is off: lets one administrator in by their password, for a short time."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        if settings.PASSWORD_SIGN_IN:
            raise CommandError(
                "Everybody signs in with their password here: MEMORYHUB_PASSWORD_SIGN_IN is on."
            )
        administrators = User.objects.filter(is_active=True, is_staff=True, is_superuser=True)
        user = administrators.filter(username=username).first()
        if user is None:
            raise CommandError(f"No administrator is called {username}.")
        sign_in.allow_password(user)
        self.stdout.write(f"For {sign_in.MINUTES} minutes {username} can sign in with their password.")
