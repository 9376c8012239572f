"""Check stored memories against the current rules for credentials: ``manage.py scan_secrets``."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from memories.forgetting.copies import Scan, scan
from memoryhub.database.startup import running_database
from memoryhub.management import Progress


class Command(BaseCommand):
    help = (
        "Check the memories that today's rules for credentials have not seen, and hide those that look like one: they "
        "are forgotten softly and can be restored. Can be interrupted, and goes on where it was. Lists ids and kinds, "
        "never a text."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--all", action="store_true", help="also those that these rules have seen")
        parser.add_argument("--dry-run", action="store_true", help="list what matches and change nothing")

    def handle(self, *args: Any, dry_run: bool, **options: Any) -> None:
        with running_database():
            found, listed, progress = Scan(0), 0, Progress(self.stderr)
            try:
                for found in scan(now=timezone.now(), check_all=options["all"], hide=not dry_run):
                    for public_id, kind in found.hidden[listed:]:
                        progress.end()
                        self.stdout.write(f"{public_id} {kind}")
                    listed = len(found.hidden)
                    share = 100 * found.checked // max(1, found.total)
                    progress.show(f"{found.checked:,} of {found.total:,} ({share} %)")
            except KeyboardInterrupt:
                progress.end()
                self.stderr.write(
                    "Interrupted. What has been checked stays checked; run this again to continue."
                )
                return
            progress.end()
            done = "would be hidden" if dry_run else "hidden"
            self.stdout.write(
                f"{found.checked:,} checked, {len(found.hidden):,} {done}, "
                f"{len(found.excerpts):,} excerpts {'would be ' if dry_run else ''}dropped."
            )
