"""`manage.py backup PLACE`: write all data of the installation to one file, locally or in an S3-compatible store."""

import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub.backup.archive import make_backup, older_than_newest
from memoryhub.backup.storage import BackupError, place_of
from memoryhub.database.startup import running_database
from memoryhub.management import Progress

NAMED, ANY_NAMED = "memoryhub-%Y%m%d-%H%M%S.zip", "memoryhub-????????-??????.zip"
NO_KEYS = (
    "Without MEMORYHUB_BACKUP_PASSPHRASE its keys are not in it: keep secret-key and forget-key elsewhere."
)


class Command(BaseCommand):
    help = (
        "Write the database, the stored files and (with MEMORYHUB_BACKUP_PASSPHRASE) the keys into one file. Works "
        "while MemoryHub runs. What people said is in it, readable: keep it as you keep the data folder."
    )
    requires_system_checks = []  # the database may not be running yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file",
            help="a file that is not there yet, or a folder to name one in; in a store s3://bucket/file.zip, or "
            "s3://bucket/folder/ with the slash",
        )
        parser.add_argument(
            "--keep",
            type=int,
            default=0,
            help="of a folder: remove all but the newest so many of this installation; 0 keeps all",
        )

    def handle(self, *args: Any, file: str, keep: int, **options: Any) -> None:
        progress = Progress(self.stderr)

        def say(text: str) -> None:
            progress.clear()
            self.stdout.write(text)

        try:
            place = place_of(file)
            folder = place if place.is_folder else None
            if keep < 0 or (keep and folder is None):
                raise CommandError("--keep takes a number from 0 on, and a folder that is there.")
            if folder is not None:
                place = folder.inside(time.strftime(NAMED, time.gmtime()))
            began = time.monotonic()
            with running_database():
                make_backup(place, settings.BACKUP_PASSPHRASE, say, progress.show)
            if not settings.BACKUP_PASSPHRASE:
                say(NO_KEYS)
            seconds = time.monotonic() - began
            for old in older_than_newest(folder, ANY_NAMED, keep) if folder and keep else ():
                old.remove()
                say(f"{old} removed")
            say(
                f"{place}: {place.size():,} bytes in {seconds:.1f} s. Try it: manage.py restore --drill {place}"
            )
        except BackupError as error:
            raise CommandError(str(error)) from error
        finally:
            progress.clear()
