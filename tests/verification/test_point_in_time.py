"""Point-in-time recovery by docs/operations.md, with real PostgreSQL servers."""

import os
from pathlib import Path

from tests.memoryhub.local.processes import wait_until
from tests.migrated import environment, lend_to
from tests.replicated import Server
from tests.stack import Stack

SAID = """
from tests.factories import make_memory
from workspaces.models import User
for text in ("The safe is at 4", "The bin is at 5"):
    make_memory(text, User.objects.get())
"""
FORGOTTEN = """
from django.utils import timezone
from memories.forgetting.for_good import forget_memories
from memories.models import Memory
forget_memories(Memory.objects.filter(content__contains="safe"), by=None, now=timezone.now())
"""


class Archiving(Server):
    """A server that archives its WAL segments into a folder, as docs/operations.md says."""

    def __init__(self, data_dir: Path, archive: Path) -> None:
        super().__init__(data_dir)
        self.archive = archive
        archive.mkdir()
        if self.account:
            os.chown(archive, self.account.pw_uid, self.account.pw_gid)

    def command(self) -> list[str]:
        copies = f"test ! -f {self.archive}/%f && cp %p {self.archive}/%f"
        return [*super().command(), "--archive_mode=on", f"--archive_command={copies}"]

    def has_archived(self, segment: str) -> bool:
        return bool(self.ask(f"SELECT last_archived_wal >= '{segment}' FROM pg_stat_archiver"))


def test_what_an_accident_took_is_there_again_as_of_a_moment_before_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    archive = tmp_path / "archive"
    first, second = Archiving(tmp_path / "first", archive), Server(tmp_path / "second")
    made = {"MEMORYHUB_ADMIN_USERNAME": "olive", "MEMORYHUB_ADMIN_PASSWORD": "correct horse battery"}
    stack = Stack(first.data_dir, environment(first.data_dir, DATABASE_URL=first.url, **made), first)
    lend_to(first.data_dir)
    try:
        first.initialise()
        first.start()
        second._make_folders()
        second.run("pg_basebackup", "-d", first.place, "-D", str(second.cluster), "--checkpoint=fast")
        stack.manage("ensure_admin")
        stack.manage("shell", "-c", SAID)
        moment = first.ask("SELECT clock_timestamp()")
        stack.manage("shell", "-c", FORGOTTEN)
        first.ask("TRUNCATE workspaces_user CASCADE")
        segment = first.ask("SELECT pg_walfile_name(pg_switch_wal())")
        wait_until(lambda: first.has_archived(segment), "the log up to the accident is in the archive")
        first.stop()
        with (second.cluster / "postgresql.auto.conf").open("a") as configuration:
            configuration.write(f"restore_command = 'cp {archive}/%f %p'\n")
            configuration.write(f"recovery_target_time = '{moment.isoformat()}'\n")
            configuration.write("recovery_target_action = 'promote'\n")
        (second.cluster / "recovery.signal").touch()
        second.start()
        wait_until(lambda: not second.ask("SELECT pg_is_in_recovery()"), "it has recovered to the moment")
        assert second.ask("SELECT username FROM workspaces_user") == "olive"
        stack.env["DATABASE_URL"] = second.url  # with the first server's keys
        assert stack.manage("migrate", "--check") == ""
        assert (
            second.ask("SELECT string_agg(content, ', ') FROM memories_memory")
            == "The safe is at 4, The bin is at 5"
        )
        first.start()
        said = stack.manage("forget_again", first.url)
        assert second.ask("SELECT string_agg(content, ', ') FROM memories_memory") == "The bin is at 5", said
    finally:
        stack.stop()
        second.stop()
        first.stop()
