"""Check stored memories against the current rules for credentials: ``manage.py scan_secrets``."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from memories.forgetting.remaining_copies import Scan, scan
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
            scan_result, listed, progress = Scan(0), 0, Progress(self.stderr)
            try:
                for scan_result in scan(now=timezone.now(), check_all=options["all"], hide=not dry_run):
                    for public_id, kind in scan_result.hidden[listed:]:
                        progress.end()
                        self.stdout.write(f"{public_id} {kind}")
                    listed = len(scan_result.hidden)
                    share = 100 * scan_result.checked // max(1, scan_result.total)
                    progress.show(f"{scan_result.checked:,} of {scan_result.total:,} ({share} %)")
            except KeyboardInterrupt:
                progress.end()
                self.stderr.write(
                    "Interrupted. What has been checked stays checked; run this again to continue."
                )
                return
            progress.end()
            done = "would be hidden" if dry_run else "hidden"
            self.stdout.write(
                f"{scan_result.checked:,} checked, {len(scan_result.hidden):,} {done}, "
                f"{scan_result.excerpts:,} excerpts {'would be ' if dry_run else ''}dropped."
            )
