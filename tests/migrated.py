"""A cached migrated database that tests copy: migrating takes ten seconds of CPU, and each process needs it.

It lies beside pytest's own cache, under the name of what it was made from: migrations, and what follows them.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from memoryhub.local.postgres import EmbeddedPostgres

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".pytest_cache" / "migrated"


def environment(data_dir: Path, **more: str) -> dict[str, str]:
    """Return the environment for processes of a separate installation, without the settings of the test run."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MEMORYHUB_")}
    for name in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE"):
        clean.pop(name, None)
    return (
        clean
        | {"MEMORYHUB_DATA_DIR": str(data_dir), "PYTHONUNBUFFERED": "1", "MEMORYHUB_BUILTIN_MODEL": "small"}
        | more
    )


def lend_to(data_dir: Path) -> None:
    """Put the database where an ``EmbeddedPostgres`` of this folder looks for one."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = CACHE / _name()
        if not made.exists():
            _make(made)
        _copy(made, data_dir / "postgres")


def _name() -> str:
    sources = [*sorted(ROOT.glob("*/migrations/*.py")), *sorted(ROOT.glob("*/apps.py"))]
    sources += [ROOT / "memoryhub" / "jobs.py", ROOT / "requirements" / "base.txt"]
    digest = hashlib.sha256()
    for source in sources:
        digest.update(f"{source.name}\0".encode() + source.read_bytes())
    return digest.hexdigest()[:16]


def _make(place: Path) -> None:
    for older in CACHE.glob("*/"):
        if not older.name.startswith(_name()) or older.suffix:  # or it is an interrupted copy
            shutil.rmtree(older)
    with tempfile.TemporaryDirectory(prefix="memoryhub-migrated-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server may run as another user
        server = EmbeddedPostgres(folder)
        server.initialise()
        server.start()
        try:
            migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
            subprocess.run(migrate, cwd=ROOT, env=environment(folder), check=True)
        finally:
            server.stop()
        unfinished = place.with_suffix(".unfinished")
        _copy(server.cluster, unfinished)
        unfinished.rename(place)


def _copy(cluster: Path, place: Path) -> None:
    """Copy with the owner, who may be the server's account."""
    subprocess.run(["cp", "-a", str(cluster), str(place)], check=True)
