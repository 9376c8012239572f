"""`manage.py forget_again SOURCE`: repeat deletions for good from a newer backup or database, after a recovery."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub.backup.archive import Reader, installation
from memoryhub.backup.restore import forget_again, is_kin, tables_of
from memoryhub.backup.storage import BackupError, place_of
from memoryhub.database.startup import running_database
from memoryhub.environment import database_from_url, libpq_settings


class Command(BaseCommand):
    help = (
        "Forget again, in this database, what was forgotten for good in a newer one; and close the links and "
        "invitations that are not open there. For a database that was recovered to a moment, before people come back."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "source",
            help="what is newer: a backup (a file, or s3://bucket/folder/file.zip), or a database (postgres://…)",
        )

    def handle(self, *args: Any, source: str, **options: Any) -> None:
        try:
            with running_database(), _opened(source) as newer:
                forget_again(newer, self.stdout.write)
        except (BackupError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        except psycopg.Error as error:
            raise CommandError(f"What it knows could not be read: {error}") from error


@contextmanager
def _opened(source: str) -> Iterator[psycopg.Connection[Any]]:
    if source.startswith(("postgres://", "postgresql://")):
        with psycopg.connect(**libpq_settings(database_from_url(source, "SOURCE"))) as connection:
            connection.read_only = True
            if not is_kin(connection):
                raise CommandError(
                    "That database is of another installation: it was never one with the one here."
                )
            yield connection
        return
    with Reader(place_of(source)) as archive:
        if archive.manifest.installation != installation():
            raise CommandError(f"{source} is of another installation: its FORGET_KEY is not the one here.")
        with tables_of(archive) as connection:
            yield connection
