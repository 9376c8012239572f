"""The failures in the table of docs/operations.md, each row with the tests that show it.

``python -m tests.verification.faults`` runs these tests and prints the rows that held, with their figures.
"""

import sys
from dataclasses import dataclass, field

import pytest

HERE = "tests/verification"


@dataclass(frozen=True)
class Fault:
    """A row of the table. ``shown_by``: tests, by file and name, below tests/verification."""

    what: str
    goes_on: str
    refused: str
    comes_back: str
    shown_by: tuple[str, ...]

    @property
    def row(self) -> str:
        return f"| {self.what} | {self.goes_on} | {self.refused} | {self.comes_back} |"


FAULTS = (
    Fault(
        "the data disk is full",
        "pages, lists, recall and metrics; web processes and the database keep running",
        "saves, messages, uploads and imports: 503 with a message and `Retry-After: 60`; `/readyz` returns 503",
        "at the first request once there is space; interrupted documents within two minutes. No acknowledged write "
        "is lost",
        ("test_faults.py::test_a_full_data_disk",),
    ),
    Fault(
        "a service's log cannot be written",
        "everything; the console still shows each line",
        "nothing",
        "with the next line; until then, the console warns once a minute",
        ("test_faults.py::test_a_full_data_disk",),
    ),
    Fault(
        "a worker is killed (SIGKILL) while it reads a document",
        "everything; other jobs continue once the supervisor has restarted the worker",
        "nothing",
        "another worker reads the document, within about 80 seconds",
        ("test_faults.py::test_a_killed_worker", "test_faults.py::test_a_killed_job"),
    ),
    Fault(
        "the process that reads a document is killed because memory runs out",
        "everything",
        "nothing",
        "the document is read again at once; if killed again, it fails for lack of memory",
        ("test_faults.py::test_a_killed_reader",),
    ),
    Fault(
        "a remote embedder does not respond, or sends its vectors byte by byte",
        "saves and lists; searches and answers use words only",
        "nothing; in each process one request waits 10.5 seconds, then none for 20 seconds",
        "it is retried after 20 seconds; missing vectors are added to memories within two minutes, to documents "
        "within the hour",
        ("test_faults.py::test_an_embedder_that_trickles",),
    ),
    Fault(
        "a remote embedder answers with errors (500)",
        "the same",
        "nothing; in each process one request waits 1.3 seconds for two retries, then none for 2 (then 4, 8, 16, "
        "20) seconds",
        "it is retried after that time; missing vectors as above",
        ("test_faults.py::test_an_embedder_that_fails_at_once",),
    ),
    Fault(
        "a web process is killed during an answer",
        "requests to other web processes",
        "the rest of the answer; the text so far is kept, with **Retry**",
        "the supervisor restarts the process",
        ("test_processes.py::test_a_killed_web_process_leaves_the_text_so_far_and_a_retry",),
    ),
    Fault(
        "a worker is killed while it extracts memories or imports",
        "everything",
        "nothing",
        "another one stores the rest, each item once",
        (
            "test_processes.py::test_a_worker_killed_in_the_middle_of_an_extraction_stores_everything_once",
            "test_import.py::test_a_worker_killed_while_it_stores_is_followed_by_one_that_stores_the_rest_once",
        ),
    ),
    Fault(
        "all connections to the database are cut",
        "reads, which are retried once",
        "writes in progress: 503",
        "at the next request",
        (
            "test_database_trouble.py::test_after_every_connection_was_cut_nobody_notices",
            "test_database_trouble.py::test_a_cut_in_the_middle_of_writes_is_503_and_over_at_once",
        ),
    ),
)
HEAD = ("| failure | still works | fails | recovery |", "|---|---|---|---|")


def table() -> str:
    return "\n".join([*HEAD, *(fault.row for fault in FAULTS)])


@dataclass
class Results:
    """A pytest plugin that records passed tests and their figures."""

    passed: set[str] = field(default_factory=set)
    counted: list[str] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid.removeprefix(f"{HERE}/"))
            self.counted += [f"{name}: {value}" for name, value in report.user_properties]


def main() -> int:
    wanted = sorted({test for fault in FAULTS for test in fault.shown_by})
    results = Results()
    status = pytest.main(
        [*(f"{HERE}/{test}" for test in wanted), "-n", "0", "-q", "-p", "no:randomly"], plugins=[results]
    )
    print(*HEAD, sep="\n")
    for fault in FAULTS:
        if results.passed.issuperset(fault.shown_by):
            print(fault.row)
    print(*results.counted, sep="\n")
    return int(status) or len(set(wanted) - results.passed)


if __name__ == "__main__":
    sys.exit(main())
