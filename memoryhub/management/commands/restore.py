"""`manage.py restore PLACE`: replace the database by a backup, or test a backup with --drill."""

import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub.backup.archive import Reader
from memoryhub.backup.restore import drill, restore
from memoryhub.backup.storage import BackupError, place_of
from memoryhub.database.startup import running_database
from memoryhub.local.data_folder import AlreadyRunning, make_data_folders, run_lock
from memoryhub.management import Progress


class Command(BaseCommand):
    help = (
        "Put a backup in the place of the database. What was forgotten for good since it was made is forgotten in it "
        "too. MEMORYHUB_BACKUP_PASSPHRASE opens the keys. MemoryHub must be stopped, but for --drill."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="a file, or in an S3-compatible store s3://bucket/folder/file.zip")
        parser.add_argument("--replace", action="store_true", help="also where the database has people in it")
        parser.add_argument(
            "--drill", action="store_true", help="restore beside the database, compare, and drop it again"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        began, self.progress = time.monotonic(), Progress(self.stderr)
        try:
            with Reader(place_of(options["file"]), self.progress.show) as archive:
                if options["drill"]:
                    with running_database():
                        drill(archive, self._say)
                    done = "The backup can be restored."
                else:
                    done = self._restore(archive, replace=options["replace"])
        except (BackupError, AlreadyRunning) as error:
            raise CommandError(str(error)) from error
        finally:
            self.progress.clear()
        self.stdout.write(f"{done} {time.monotonic() - began:.1f} s.")

    def _say(self, text: str) -> None:
        self.progress.clear()
        self.stdout.write(text)

    def _restore(self, archive: Reader, *, replace: bool) -> str:
        make_data_folders(settings.DATA_DIR)
        with run_lock(settings.DATA_DIR, "manage.py restore"), running_database():
            earlier = restore(archive, settings.BACKUP_PASSPHRASE, replace=replace, say=self._say)
        if earlier is None:
            return "Restored. Start MemoryHub with `make run`."
        return (
            f"Restored. The database of before is kept as {earlier}: what was forgotten in it since then is not "
            "touched by that. The next restore drops it."
        )
