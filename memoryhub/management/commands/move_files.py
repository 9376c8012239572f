"""`manage.py move_files`: move files into a newly configured store while MemoryHub runs."""

from collections import Counter
from typing import Any

from django.core.files.storage import FileSystemStorage, storages
from django.core.management.base import BaseCommand, CommandError

from memoryhub.database.startup import running_database
from memoryhub.management import Progress
from memoryhub.stored_files import PLACES, StoredFiles, files_folder


class Command(BaseCommand):
    help = (
        "Put the files of documents and memories that lie in the folder into the store that MEMORYHUB_S3_… names. "
        "Meanwhile they are read from wherever they are."
    )
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        if all(isinstance(storages[name], FileSystemStorage) for name in PLACES):
            raise CommandError(
                f"No store is named here, so files stay in {files_folder()}. Set MEMORYHUB_S3_BUCKET (docs/options.md) "
                "as on every host."
            )
        moved, progress = Counter[bool](), Progress(self.stderr)
        try:
            with running_database():
                for files in StoredFiles.every.values():
                    for went in files.move():
                        moved[went] += 1
                        progress.show(f"{moved[True]:,} files moved")
                progress.clear()
        except Exception as error:  # a storage's library may raise anything
            raise CommandError(
                f"Not all could be moved ({type(error).__name__}). The others lie where they lay: try it again."
            ) from error
        self.stdout.write(f"{moved[True]} files moved from {files_folder()}.")
        if moved[False]:
            self.stdout.write(
                f"{moved[False]} stay there: their workspaces never leave this machine, and the store is another one; "
                "or no row tells of them."
            )
