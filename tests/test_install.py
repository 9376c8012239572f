"""Installation errors in one sentence, with pip's output in a file."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "requirements" / "install.py"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The interpreter of a new environment with the test's pip."""
    folder = tmp_path_factory.mktemp("install") / "env"
    venv.create(folder, with_pip=False, symlinks=True, system_site_packages=False)
    site = next((folder / "lib").glob("python*/site-packages"))
    import pip

    site.joinpath("pip").symlink_to(Path(pip.__file__).parent)
    yield folder / "bin" / "python"
    shutil.rmtree(folder)


def installed(
    python: Path, text: str, tmp_path: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    requirements = tmp_path / "some.txt"
    requirements.write_text(text)
    return subprocess.run(
        [python, SCRIPT, requirements],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PIP_RETRIES": "0", **environment},
    )


def test_a_terminal_is_shown_how_many_packages_are_done(python: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "memoryhub_some_package-1.0-py3-none-any.whl"
    info = "memoryhub_some_package-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: memoryhub-some-package\nVersion: 1.0\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    hashed = hashlib.sha256(wheel.read_bytes()).hexdigest()
    requirements = tmp_path / "some.txt"
    requirements.write_text(f"memoryhub-some-package==1.0 --hash=sha256:{hashed}\n")
    ours, theirs = os.openpty()
    ended = subprocess.run(
        [python, SCRIPT, requirements, "--no-index", "--find-links", tmp_path], stdout=theirs, check=False
    )
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    os.close(theirs)
    assert ended.returncode == 0
    assert "1 of 1 packages looked up or downloaded" in shown
    assert "1 packages are being unpacked" in shown


def test_without_a_network_it_says_what_is_needed(python: Path, tmp_path: Path) -> None:
    text = f"memoryhub-no-such-package==1.0 --hash=sha256:{'0' * 64}\n"
    ended = installed(python, text, tmp_path, PIP_NO_INDEX="1")
    assert ended.returncode == 1
    assert ended.stderr.startswith("The packages could not be downloaded. The first start needs a network")
    assert ended.stderr.count("\n") == 1 and "Traceback" not in ended.stderr
    assert "No matching distribution" in (python.parents[2] / "install.log").read_text()


def test_a_failure_of_another_kind_still_names_the_log(python: Path, tmp_path: Path) -> None:
    ended = installed(python, "no requirement at all !\n", tmp_path)
    assert ended.returncode == 1 and "What pip said: " in ended.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder that another user cannot write")
def test_folder_that_cannot_be_written_is_named_in_one_sentence(tmp_path: Path) -> None:
    tree = Path(tempfile.mkdtemp(dir="/tmp"))  # every user may read below it, unlike below pytest's own
    try:
        tree.chmod(0o755)
        shutil.copy(SCRIPT.parent.parent / "Makefile", tree)
        ended = subprocess.run(
            ["make", "run"],
            cwd=tree,
            env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
            capture_output=True,
            text=True,
            check=False,
            user=65534,
            group=65534,
        )
    finally:
        shutil.rmtree(tree)
    first, *rest = ended.stderr.splitlines()
    assert (
        first
        == f"{tree} cannot be written by this user: copy MemoryHub to a folder of your own, and start it there."
    )
    assert all(line.startswith("make: ") for line in rest) and "Errno" not in ended.stdout + ended.stderr


def test_nothing_to_do_is_done_in_silence(python: Path, tmp_path: Path) -> None:
    ended = installed(python, "\n", tmp_path)
    assert (ended.returncode, ended.stderr) == (0, ""), sys.version
