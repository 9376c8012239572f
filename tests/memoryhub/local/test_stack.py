"""The web server's socket, and the address that the stack prints."""

import errno
import re
import socket
import tempfile
from pathlib import Path

import pytest

from memoryhub.local import model_server
from memoryhub.local import stack as stack_module
from memoryhub.local.model_server import KEY_VARIABLE, free_port
from memoryhub.local.stack import (
    EMBEDDER_KEY_VARIABLE,
    AddressInUse,
    Stack,
    _environment,
    embedder_service,
    listen,
    metrics_folder,
    model_service,
)
from memoryhub.management.commands.up import has_administrator
from tests.factories import make_user


def test_streamed_tokens_are_not_held_back() -> None:
    """uvicorn takes a socket passed to it for a local one and does not disable Nagle's algorithm."""
    with listen("127.0.0.1", free_port()) as listener:
        client = socket.create_connection(listener.getsockname())
        connection, _ = listener.accept()
        with client, connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_in_use_is_said_with_the_settings_name(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with listen("127.0.0.1", port := free_port()):
        assert stack_module.run(Stack(data_dir, data_dir, "127.0.0.1", port, database={})) == 1
    assert re.search(f"Port {port} of 127.0.0.1 is in use.*MEMORYHUB_PORT", capsys.readouterr().err)
    assert {each.name for each in data_dir.iterdir()} == {"run", "logs"}, "nothing was begun"


def test_a_killed_run_that_still_cleans_up_refuses_the_start(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its watchdog would remove files of the new run."""
    monkeypatch.setattr(stack_module, "wait_for_cleaner", lambda data_dir, seconds: False)
    assert stack_module.run(Stack(data_dir, data_dir, "127.0.0.1", free_port(), database={})) == 1
    assert "a killed run have not ended yet" in capsys.readouterr().err


def test_an_address_that_is_not_ours_is_said_with_the_settings_name() -> None:
    with pytest.raises(AddressInUse, match="MEMORYHUB_HOST"):
        listen("203.0.113.1", 8000)


def test_the_address_is_one_that_a_browser_opens(tmp_path: Path) -> None:
    for host, address in (
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://localhost:8000"),
        ("::1", "http://[::1]:8000"),
    ):
        assert Stack(tmp_path, tmp_path, host, 8000, database={}).address == address


def test_what_is_said_of_the_first_account_is_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given, said in (
        ({"first_is_administrator": True}, "signup/, it is the administrator's\n"),
        ({}, "first account: set MEMORYHUB_ADMIN_USERNAME"),
        (
            {"sign_up_open": False, "first_is_administrator": True},
            "first account: set MEMORYHUB_ADMIN_USERNAME",
        ),
    ):
        stack_module._welcome(Stack(tmp_path, tmp_path, "127.0.0.1", 8000, database={}, **given))  # type: ignore[arg-type]
        assert said in capsys.readouterr().out, given


@pytest.mark.django_db(transaction=True)
def test_nothing_is_said_of_the_first_account_once_there_is_an_administrator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = Stack(tmp_path, tmp_path, "127.0.0.1", 8000, database={}, has_administrator=has_administrator)
    make_user("olive")
    stack_module._welcome(stack)
    assert "first account" in capsys.readouterr().out
    make_user("root", is_superuser=True)
    stack_module._welcome(stack)
    assert "first account" not in capsys.readouterr().out


def test_without_a_model_that_can_be_loaded_it_says_why_and_not_that_it_is_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model_server.trouble_file(tmp_path).parent.mkdir()
    model_server.trouble_file(tmp_path).write_text("On Debian and Ubuntu: apt-get install libgomp1")
    stack_module._welcome(Stack(tmp_path, tmp_path, "127.0.0.1", 8000, database={}))
    said = capsys.readouterr().out
    assert "MemoryHub is up without a model that answers" in said
    assert "apt-get install libgomp1" in said
    assert "MemoryHub is ready" not in said


def test_a_better_model_on_its_way_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for large_model, lines in (("auto", 1), ("", 0)):
        stack_module._welcome(
            Stack(tmp_path, tmp_path, "127.0.0.1", 8000, database={}, large_model=large_model)
        )
        said = "a better model (1.1 GB) is fetched in the background"
        assert capsys.readouterr().out.count(said) == lines, large_model


def test_model_and_embedder_are_told_no_secret_of_ours(tmp_path: Path) -> None:
    """They run third-party binaries, which need only a port and their own key."""
    secret = ("DATABASE_URL", "MEMORYHUB_SECRET_KEY", "MEMORYHUB_LLM_API_KEY", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY",
              "OPENAI_API_KEY", "GITHUB_TOKEN", "MEMORYHUB_ADMIN_PASSWORD")  # fmt: skip
    harmless = {
        "PATH": "/bin",
        "HOME": "/home/hub",
        "CUDA_VISIBLE_DEVICES": "0",
        "LD_LIBRARY_PATH": "/opt/lib",
    }
    given = {**harmless, **dict.fromkeys(secret, "sesame")}
    stack = Stack(
        tmp_path, tmp_path, "127.0.0.1", 8000, database={}, environment=given, embedder_key="its own"
    )
    with socket.socket() as listener:
        for service, key in (
            (model_service(stack), KEY_VARIABLE),
            (embedder_service(stack, listener), EMBEDDER_KEY_VARIABLE),
        ):
            assert harmless.items() <= service.environment.items()
            assert "sesame" not in service.environment.values()
            assert set(service.environment) - set(harmless) == {"PYTHONUNBUFFERED", key}


def test_processes_count_in_memory_and_leave_nothing(data_dir: Path) -> None:
    data_dir.mkdir()
    with metrics_folder(data_dir) as folder:
        assert folder is not None and not folder.is_relative_to(data_dir)
        assert folder.is_relative_to("/dev/shm") or not Path("/dev/shm").is_dir()
        assert (folder.stat().st_mode & 0o777, list(folder.iterdir())) == (0o700, [])
        (folder / "counter_1.db").write_bytes(b"left")
        made = _environment(Stack(data_dir, data_dir, "localhost", 1, database={}, metrics_folder=folder))
        assert made["PROMETHEUS_MULTIPROC_DIR"] == str(folder)
        with metrics_folder(data_dir) as next_start:
            assert next_start == folder and not list(folder.iterdir())
    assert not folder.exists()


def test_without_room_in_memory_temporary_files_are_counted_in_and_without_both_each_process_alone(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    write, full = Path.write_bytes, [Path("/dev/shm")]

    def write_bytes(path: Path, data: bytes) -> int:
        if path.parent.parent in full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with metrics_folder(data_dir) as folder:
        assert folder is not None and folder.parent == tmp_path
    full.append(tmp_path)
    with metrics_folder(data_dir) as folder:
        assert folder is None
        assert "PROMETHEUS_MULTIPROC_DIR" not in _environment(
            Stack(data_dir, data_dir, "localhost", 1, database={}, environment={})
        )
    assert not list(tmp_path.iterdir()) and not list(Path("/dev/shm").glob(f"*-{data_dir.stat().st_ino:x}"))


def test_a_folder_of_that_name_that_is_a_link_is_not_followed(data_dir: Path, tmp_path: Path) -> None:
    data_dir.mkdir()
    with metrics_folder(data_dir) as folder:
        assert folder is not None
    (tmp_path / "precious").write_text("kept")
    folder.symlink_to(tmp_path)
    try:
        with metrics_folder(data_dir) as other:
            assert other != folder
        assert (tmp_path / "precious").read_text() == "kept"
    finally:
        folder.unlink()
