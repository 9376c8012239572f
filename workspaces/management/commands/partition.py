"""`manage.py partition --parts N`: the index and the memories in parts, or whole again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memoryhub.management.database import running_database
from memoryhub.management.progress import Progress
from workspaces.index import partitions, references
from workspaces.index.parted_tables import parts_of, tables, value

# A statement that looks into every part of memories holds one of each part and of each of its 23 indexes. The server
# has room for so many times its connections: this is enough for a sixth of them to do it at once.
LOCKS_A_PART = 4


class Command(BaseCommand):
    help = (
        "Put memories, and the vectors and words of what can be found, into parts, for installations that outgrow the "
        "memory of a server; --parts 0 makes them whole again. People go on working meanwhile. May be interrupted "
        "at any time and run again: it goes on where it was."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--parts", type=int, help="How many, 2 to 256; 0: whole. Without it: only say how it is."
        )

    def handle(self, *args: Any, parts: int | None, **options: Any) -> None:
        if parts is not None and parts != 0 and not 2 <= parts <= partitions.MOST_PARTS:
            raise CommandError(f"So many parts are not possible: 0, or 2 to {partitions.MOST_PARTS}.")
        with running_database():
            if parts is not None:
                self._repartition(parts)
            begun = partitions.begun()
            for table in tables():
                number = parts_of(table)
                self.stdout.write(f"{table.name}: {f'{number} parts' if number else 'whole'}")
                if table.name in begun:
                    self.stdout.write(
                        f"    --parts {begun[table.name]} was begun, and until it is done each write is done twice: "
                        f"unless it runs now, run it again, or give it up with --parts {number}."
                    )
                if references.unchecked(table):
                    self.stdout.write("    What refers to it is not checked yet: run this with --parts 0.")
            if not partitions.is_planned():
                number = max(parts_of(table) for table in tables())
                self.stdout.write(
                    "The database does not plan each search for its part, so all of them are looked into: as its "
                    f"owner, run this with --parts {number}, and restart web and workers."
                )

    def _repartition(self, parts: int) -> None:
        least = LOCKS_A_PART * parts
        if value("SELECT current_setting('max_locks_per_transaction')::int") < least:
            raise CommandError(
                "In so many parts, statements hold more locks than this server has room for. Set "
                f"max_locks_per_transaction to {least} or more, on its replicas first, and restart it."
            )
        progress = Progress(self.stderr)
        try:
            compared = partitions.repartition(parts, progress.show)
        except partitions.Unequal as unequal:
            raise CommandError(f"Nothing was changed: the copy is not the same. {unequal}") from None
        except references.NotAsDjangos as key:
            raise CommandError(
                f"Nothing was changed: in parts this foreign key cannot be kept. {key}"
            ) from None
        except partitions.Busy:
            raise CommandError(
                "Long transactions use the tables, or indexes are being built, or another run is at it. Run this "
                "again: it goes on where it was."
            ) from None
        finally:
            progress.end()
        for name, rows in compared.items():
            self.stdout.write(f"{name}: rows and their checksum before and after: {rows}")
