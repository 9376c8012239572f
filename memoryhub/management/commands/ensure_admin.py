"""`manage.py ensure_admin`: create the first account from the environment."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from memoryhub.environment import Environment


class Command(BaseCommand):
    help = "Make the administrator of MEMORYHUB_ADMIN_USERNAME, _PASSWORD and _EMAIL unless it is there."

    def handle(self, *args: Any, **options: Any) -> None:
        environment = Environment("MEMORYHUB_")
        username, password = environment.text("ADMIN_USERNAME"), environment.text("ADMIN_PASSWORD")
        email = environment.text("ADMIN_EMAIL")
        if not (username or password or email):
            return
        if not (username and password):
            missing = "MEMORYHUB_ADMIN_PASSWORD" if username else "MEMORYHUB_ADMIN_USERNAME"
            raise CommandError(
                f"{missing} is not set. An administrator needs MEMORYHUB_ADMIN_USERNAME and "
                "MEMORYHUB_ADMIN_PASSWORD (MEMORYHUB_ADMIN_EMAIL is optional)."
            )
        users: Any = get_user_model()._default_manager
        if users.filter(username=username).exists():
            return  # the user may have changed the password since
        try:
            users.create_superuser(username=username, email=email, password=password)
        except ValidationError as error:
            raise CommandError(
                f"MEMORYHUB_ADMIN_USERNAME is {username!r}. {' '.join(error.messages)}"
            ) from None
        self.stdout.write(f"Made the administrator {username}.")
