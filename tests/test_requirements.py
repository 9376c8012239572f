"""All dependencies are pinned with hashes, and the written lists agree with those that `make lock` generates."""

import ast
import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.utils import canonicalize_name

from tests.test_architecture import ROOT, SOURCES

FOLDER = ROOT / "requirements"
NAMES = sorted(path.stem for path in FOLDER.glob("*.in"))
LINE = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?(?:==([\w.]+))?(?:\s*;.*)?")
# Uvicorn, the queue, trafilatura and allauth import these.
UNNAMED = {"httptools", "uvloop", "setproctitle", "lxml-html-clean", "fido2", "qrcode"}
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def written(name: str) -> dict[str, str | None]:
    """Return the names of a written list, with the versions pinned there."""
    lines = [line.split("#")[0].strip() for line in (FOLDER / f"{name}.in").read_text().splitlines()]
    return dict(pinned(line) for line in lines if line and not line.startswith("-"))


def locked(name: str) -> dict[str, tuple[str | None, list[str]]]:
    """Return the names of a generated list, with versions and hashes."""
    text = re.sub(r"#.*", "", (FOLDER / f"{name}.txt").read_text()).replace("\\\n", " ")
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        requirement, *hashes = re.split(r"\s+(?=--)", line)
        key, version = pinned(requirement)
        assert key not in found, f"{key} stands twice in {name}.txt"
        found[key] = (version, hashes)
    return found


def pinned(requirement: str) -> tuple[str, str | None]:
    match = LINE.fullmatch(requirement)
    assert match, f"{requirement!r} is no name with an exact version"
    return canonicalize_name(match[1]), match[2]


def test_each_list_has_its_lock_and_nothing_else_lies_there() -> None:
    assert NAMES == ["base", "dev", "models", "programs", "tools", "tracing"]
    files = {path.name for path in FOLDER.iterdir()}
    assert files == {f"{name}.{kind}" for name in NAMES for kind in ("in", "txt")} | {"install.py"}


def test_every_line_has_an_exact_version_and_hashes() -> None:
    for name in NAMES:
        lines = locked(name)
        assert len(lines) >= len(written(name)) > 0
        for requirement, (version, hashes) in lines.items():
            assert version, requirement
            assert hashes and all(HASH.fullmatch(each) for each in hashes), requirement
            assert len(set(hashes)) == len(hashes), name


def test_what_is_installed_for_the_product_is_used() -> None:
    named = {name for path in SOURCES for name in _named(path)}
    of: dict[str, set[str]] = {}
    for module, names in packages_distributions().items():
        for name in names:
            of.setdefault(canonicalize_name(name), set()).add(module)
    assert {name for name in written("base") if not of[name] & named} == UNNAMED


def _named(path: Path) -> set[str]:
    """Return the top-level names of the modules that a file imports, or names by a dotted path."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    found = {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    found |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    found |= {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    return {name.split(".")[0] for name in found}


def test_what_people_wrote_is_what_is_locked() -> None:
    for name in NAMES:
        lines = locked(name)
        for requirement, version in written(name).items():
            assert requirement in lines, f"{name}.in has {requirement}, {name}.txt has not: make lock"
            assert version in (None, lines[requirement][0]), f"{requirement}: make lock"


def test_the_lists_agree_with_each_other() -> None:
    """All four are for one environment, so a second version of a package would replace the first."""
    versions: dict[str, tuple[str | None, list[str]]] = {}
    for name in ("base", "tracing", "dev", "models"):
        for requirement, line in locked(name).items():
            assert versions.setdefault(requirement, line) == line, requirement


def test_no_list_names_where_it_was_made() -> None:
    """A list names neither an index nor a folder, since a file is identified by its hash."""
    for name in NAMES:
        for kind in ("in", "txt"):
            text = (FOLDER / f"{name}.{kind}").read_text()
            assert not re.search(
                r"https?://|file://|index-url|find-links|trusted-host|/opt/|/tmp/|/home/", text
            ), name


def test_make_installs_by_hash_and_wheels_alone() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "INSTALL := install --require-hashes --only-binary :all:" in makefile
    installing = [line for line in makefile.splitlines() if re.search(r"\binstall\b.* -r ", line)]
    assert [line for line in installing if "$(INSTALL)" not in line] == []
    assert re.findall(r"\$\(INSTALL\).*-r requirements/(\w+)\.txt", makefile) == ["programs", "tools"]
    assert re.findall(r"install\.py requirements/(\w+)\.txt", makefile) == [
        "base",
        "models",
        "tracing",
        "dev",
    ]
    assert '"--require-hashes"' in (FOLDER / "install.py").read_text()
    assert '"--only-binary", ":all:"' in (FOLDER / "install.py").read_text()
    assert not re.search(r"pip\S* install(?! )", makefile.replace("pip) $(INSTALL)", ""))


def wheel(folder: Path, *, code: str) -> Path:
    """Build a wheel of one module, as an index may serve it."""
    path = folder / "sample_for_hashes-1-py3-none-any.whl"
    files = {
        "sample_for_hashes.py": code,
        "sample_for_hashes-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: sample-for-hashes\nVersion: 1\n",
        "sample_for_hashes-1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in files.items())
    files["sample_for_hashes-1.dist-info/RECORD"] = record + "sample_for_hashes-1.dist-info/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def install(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Install with the Makefile's options, from a folder instead of an index, into a separate folder."""
    options = re.search(r"INSTALL := (.*)", (ROOT / "Makefile").read_text())
    assert options
    command = [sys.executable, "-m", "pip", "--isolated", *options[1].split()]
    command += ["--no-index", "--find-links", str(folder), "--target", str(folder / "installed"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})


def test_pip_takes_the_file_that_was_locked_and_no_other(tmp_path: Path) -> None:
    """The same name and version with other content, as from a stolen account or a tampered mirror."""
    honest = hashlib.sha256(wheel(tmp_path, code="VALUE = 1\n").read_bytes()).hexdigest()
    requirements = tmp_path / "some.txt"
    requirements.write_text(f"sample-for-hashes==1 --hash=sha256:{honest}\n")
    done = install(tmp_path, "-r", str(requirements))
    assert done.returncode == 0, done.stderr

    wheel(tmp_path, code="VALUE = 2\n")
    done = install(tmp_path, "--upgrade", "--force-reinstall", "-r", str(requirements))
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert (tmp_path / "installed/sample_for_hashes.py").read_text() == "VALUE = 1\n"

    requirements.write_text("sample-for-hashes==1\n")
    done = install(tmp_path, "-r", str(requirements))
    assert done.returncode != 0 and "Hashes are required" in done.stderr
