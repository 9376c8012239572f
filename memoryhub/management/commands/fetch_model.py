"""`manage.py fetch_model`: download the larger built-in model now. A running MemoryHub or the next start uses it."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from memoryhub.local import large_model_download
from memoryhub.local.large_model_download import FetchFailed, Interrupted, Status, Wanted
from memoryhub.management import Progress

MEGABYTE = 1_000_000


class Command(BaseCommand):
    help = "Download the larger built-in model (1.1 GB), or what is missing of it, and check it."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            large_model_download.want(settings.DATA_DIR, Wanted.FETCH)
            self.progress = Progress(self.stdout)
            path = large_model_download.fetch(settings.DATA_DIR, on_progress=self._show)
        except (FetchFailed, OSError) as error:
            raise CommandError(
                f"{error} What is downloaded stays; the next try goes on from there."
            ) from error
        except Interrupted:
            raise CommandError("The download was paused or removed on the Models page.") from None
        self.progress.clear()
        self.stdout.write(self.style.SUCCESS(f"The larger model is in {path}."))

    def _show(self, status: Status) -> None:
        megabytes, total = status.fetched // MEGABYTE, large_model_download.SIZE // MEGABYTE
        filled = status.percent // 4
        self.progress.show(f"[{'#' * filled:<25}] {status.percent:3d} %  {megabytes:,} of {total:,} MB")
