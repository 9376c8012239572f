"""Commands of the docs, run in a whole installation with actual paths and names; exceptions are listed with a
reason.
"""

import re
import shutil
import subprocess
import sys
import timeit
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memoryhub.local.postgres import connection_settings
from tests.fakes.object_store import KEY, SECRET, empty_bucket, keys_in, running_store
from tests.memoryhub.local.processes import wait_until
from tests.migrated import environment
from tests.stack import ROOT, Stack, free_port, running_stack
from tests.test_docs import ALL

FILE = "/backups/memoryhub-20260101-030000.zip"
IN_STORE = "s3://bucket/hub/memoryhub-20260101-030000.zip"
# In this order, with a part of each output.
TYPED = {
    "manage.py seed_demo": "60 memories",
    "manage.py doctor": "database: well",
    "manage.py check --deploy": "System check identified",
    "manage.py reseal": "are under the first key",
    "manage.py scan_secrets": "checked, 0 hidden",
    "manage.py reembed": "Recall compares vectors of",
    "manage.py recall_test WORKSPACE": "questions asked",
    "manage.py let_in_by_password NAME": "admin can sign in with their password",
    "manage.py scrub": "is in no file of the database any more",
    "manage.py backup /backups --keep 14": "Try it: manage.py restore --drill",
    "manage.py backup s3://bucket/hub/ --keep 14": "Try it: manage.py restore --drill",
}
AFTERWARDS = {  # with the backup made by then
    f"manage.py restore --drill {FILE}": "The backup can be restored.",
    f"manage.py restore {FILE}": "The database has people in it.",
    f"manage.py restore --replace {FILE}": "Restored.",
    f"manage.py forget_again {IN_STORE}": "Texts forgotten since: 0",
    "manage.py forget_again postgres://memoryhub:…@db-before.internal/memoryhub": "Texts forgotten since: 0",
}
MODEL = "manage.py up --only model --host 0.0.0.0 --port 8081"
TIMED = 'python -m timeit -s from memoryhub.monitoring import tracing with tracing.span("x"): pass'
HERE = [
    *TYPED,
    *AFTERWARDS,
    MODEL,
    TIMED,
    "sh deploy/container/make-secrets.sh",
]
# Commands that run elsewhere, and those that nothing runs, with the reason.
ELSEWHERE = {
    r"(python -m )?pytest .+": "the tests themselves",
    r"python -m tests\.verification\.faults": "it runs tests that are here",
    r"export .+": "test_what_is_exported_is_taken",
    r"manage\.py mcp": "tests/chat/programs/test_mcp.py",
    r"manage\.py up --only (web|worker)": "test_hosts.py",
    r"manage\.py up --only embedder --host 0.0.0.0 --port 8082": "test_embedder_part.py",
    r"python -m tests\.messages --missing de": "tests/test_translatable.py",
    r"manage\.py fetch_model": "tests/memoryhub/local/test_large_model.py: it downloads 1.1 GB",
    r"manage\.py move_files": "tests/workspaces/documents/test_s3.py",
    r"psql .+|pg_basebackup .+|pg_ctl promote .+|pg_rewind .+": "tests/replicated.py, with places of its own",
    r"docker (build|compose|run) .+": "make container, in Podman's words",
    r"make (help|docs|docs-site|messages|untranslated|licences)": "what they call is called by tests",
    r"make (run|test|verify|quick|attack|fuzz|container)( .+)?": "they run these tests, or what these start",
    r"make (setup|install|install-tracing|programs|lock|audit)( .+)?": "nobody here: they ask package registries",
    r"make format|manage\.py makemigrations .+": "nobody here: they change the checkout",
    r"(\S*/)?pip install .+|apt-get install .+|git .+|python -m venv .+|cd .+": "nobody here: they fetch things",
    r"kubectl (-n|apply|create) .+": "nobody: no cluster is at hand",
    r"pg_ctl start .+": "nobody: the tests' servers are started with a port and an account of their own",
    r"manage\.py changepassword": "nobody: it asks at a terminal, and is Django's",
    r"(python )?(manage\.py |-m tests\.bench\.(command )?|tests/bench/)(bench_|fit_|score_|as_|own_|outside_).+": (
        "by hand: it measures for minutes, or asks for data that are not here"
    ),
}


def plain(words: list[str]) -> str:
    """Return a command as these lists have it, without the Python that runs it."""
    text = re.sub(r"^(\S*/)?python3? (?=manage\.py)", "", " ".join(words))
    return re.sub(r"^\S*/(python)", r"\1", text)


# Except in the changelog and the decisions, which are records of their time.
ASKED = {plain(words): words for line, words in ALL if not re.match("CHANGELOG|docs/decisions/", line.page)}


def names_one(command: str) -> bool:
    """Return whether it is only the name of a command that is run, as in a sentence."""
    is_name = re.fullmatch(r"manage\.py \w+( --only)?", command)
    return is_name is not None and any(each.startswith(f"{command} ") for each in HERE)


def test_every_command_of_the_docs_is_typed_or_listed_with_why_not() -> None:
    assert [each for each in HERE if each not in ASKED] == [], "these stand in no page any more"
    rest = {each for each in ASKED if each not in HERE and not names_one(each)}
    unknown = {each for each in rest if not any(re.fullmatch(pattern, each) for pattern in ELSEWHERE)}
    assert unknown == set()
    unused = {pattern for pattern in ELSEWHERE if not any(re.fullmatch(pattern, each) for each in rest)}
    assert unused == set()


class DocumentedCommands:
    """Runs documented commands, with actual paths and names in place of the examples."""

    def __init__(self, stack: Stack, store: Any, put_in: dict[str, str]) -> None:
        self.stack, self.store, self.put_in = stack, store, put_in

    def type(self, commands: dict[str, str]) -> None:
        """Run the commands, each with a part of its expected output."""
        for each, expected in commands.items():
            status, said = self.stack.typed(*self.words(each)[1:])
            assert expected in said, f"{each}: {status}, {said}"
            found = "doctor" in each or "people in it" in expected  # a finding sets the status as well
            assert (status == 0) is not found, f"{each}: {status}, {said}"

    def words(self, command: str) -> list[str]:
        for theirs, ours in self.put_in.items():
            command = command.replace(theirs, ours)
        return command.split()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[DocumentedCommands]:
    (tmp_path / "backups").mkdir()
    env = {"MEMORYHUB_ADMIN_USERNAME": "admin", "MEMORYHUB_ADMIN_PASSWORD": "difference engine"}
    env |= {"MEMORYHUB_BACKUP_PASSPHRASE": "opens what is in it", "MEMORYHUB_PASSWORD_SIGN_IN": "off"}
    env |= {"MEMORYHUB_OAUTH_GITHUB_CLIENT_ID": "hub", "MEMORYHUB_OAUTH_GITHUB_CLIENT_SECRET": "its own"}
    env |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    with running_store() as address, running_stack(tmp_path, **env, AWS_ENDPOINT_URL_S3=address) as stack:
        bucket = empty_bucket(address, "bucket")
        yield DocumentedCommands(stack, bucket, {"/backups": str(tmp_path / "backups"), "NAME": "admin"})


def test_what_the_docs_say_to_type_does_what_they_say(shell: DocumentedCommands, tmp_path: Path) -> None:
    shell.stack.manage("ensure_admin")
    with psycopg.connect(address_of(shell.stack)) as connection:
        [found] = connection.execute("SELECT public_id FROM workspaces_workspace ORDER BY id").fetchone() or [
            ""
        ]
    shell.put_in["WORKSPACE"] = str(found)
    shell.type(TYPED)
    [made] = (tmp_path / "backups").iterdir()
    before = address_of(shell.stack, "memoryhub_before_restore")
    shell.put_in = {
        FILE: str(made),
        IN_STORE: f"s3://bucket/{keys_in(shell.store, 'bucket')[0]}",
        "postgres://memoryhub:…@db-before.internal/memoryhub": before,
    }
    shell.type(AFTERWARDS)


def address_of(stack: Stack, database: str = "memoryhub") -> str:
    place = connection_settings(stack.folder)
    return f"postgres://{place['user']}@/{database}?host={place['host']}&port={place['port']}"


def test_the_model_starts_as_the_docs_say_and_ends(tmp_path: Path) -> None:
    port = free_port()
    given = {
        "BASE_URL": f"http://127.0.0.1:{port}/v1",
        "API_KEY": "its own key",
        "MODEL": "smollm2-135m-instruct",
    }
    env = environment(tmp_path / "part", **{f"MEMORYHUB_LLM_{name}": value for name, value in given.items()})
    words = MODEL.replace("0.0.0.0", "127.0.0.1").replace("8081", str(port)).split()
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen([sys.executable, *words], cwd=ROOT, env=env, stdout=said, stderr=said)
    try:
        wait_until(lambda: b"MemoryHub is ready" in (tmp_path / "said").read_bytes(), "it is ready")
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / "said").read_text().splitlines()[-1].endswith("| stopped")


def test_what_is_timed_says_how_long_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    timeit.main(["--repeat", "1", *ASKED[TIMED][3:]])
    assert "per loop" in capsys.readouterr().out


def test_secrets_of_containers_are_made_once(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "deploy/container", tmp_path / "deploy/container")
    command = ["sh", "deploy/container/make-secrets.sh"]
    made = tmp_path / "deploy/container/secrets"
    assert subprocess.run(command, cwd=tmp_path).returncode == 0
    kept = {each.name: each.read_text() for each in made.iterdir()}
    assert kept.keys() == {"database-password", "database-url", "replica-url", "secret-key", "forget-key"}
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode != 0
    assert {each.name: each.read_text() for each in made.iterdir()} == kept


@pytest.mark.parametrize("page", sorted({line.page for line, words in ALL if words[0] == "export"}))
def test_what_is_exported_is_taken(page: str, tmp_path: Path) -> None:
    """The settings accept everything that a page sets, the last value of each: with the files and folders named."""
    (tmp_path / "key").write_text("of every host " * 3)
    said = {each for line, words in ALL if (line.page, words[0]) == (page, "export") for each in words[1:]}
    given = dict(each.split("=", 1) for each in said)
    for name, value in given.items():
        value = str(tmp_path / "key") if name.endswith("_FILE") else value.replace("…", "its-own")
        given[name] = str(tmp_path / "files") if name == "MEMORYHUB_FILES_DIR" else value
    command, env = [sys.executable, "-c", "import memoryhub.settings"], environment(tmp_path, **given)
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
