"""`manage.py backup FILE`: everything the installation keeps, in one file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub.backup.archive import BackupError
from memoryhub.backup.making import make_backup
from memoryhub.management.database import running_database

NAMED, ANY_NAMED = "memoryhub-%Y%m%d-%H%M%S.zip", "memoryhub-????????-??????.zip"
NO_KEYS = (
    "Without MEMORYHUB_BACKUP_PASSPHRASE its keys are not in it: keep secret-key and forget-key elsewhere."
)


class Command(BaseCommand):
    help = (
        "Write the database, the stored files and (with MEMORYHUB_BACKUP_PASSPHRASE) the keys into one file. Works "
        "while MemoryHub runs. What people said is in it, readable: keep it as you keep the data folder."
    )
    requires_system_checks = []  # the database may not be up yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", type=Path, help="a file that is not there yet, or a folder to name one in"
        )
        parser.add_argument(
            "--keep", type=int, default=0, help="of a folder: remove all but the newest so many; 0 keeps all"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        keep: int = options["keep"]
        if keep < 0 or (keep and not path.is_dir()):
            raise CommandError("--keep takes a number from 0 on, and a folder that is there.")
        if path.is_dir():
            path /= time.strftime(NAMED, time.gmtime())
        passphrase = settings.BACKUP_PASSPHRASE
        began = time.monotonic()
        with running_database():
            try:
                make_backup(path, passphrase, self.stdout.write)
            except BackupError as error:
                raise CommandError(str(error)) from error
        if not passphrase:
            self.stdout.write(NO_KEYS)
        seconds = time.monotonic() - began
        for old in sorted(path.parent.glob(ANY_NAMED))[:-keep] if keep else ():
            old.unlink()
            self.stdout.write(f"{old} removed")
        self.stdout.write(
            f"{path}: {path.stat().st_size:,} bytes in {seconds:.1f} s. Try it: manage.py restore --drill {path}"
        )
