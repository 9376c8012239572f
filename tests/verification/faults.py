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
        "pages, lists, recall and metrics; no web process and no database ends",
        "saves, messages, uploads and imports: 503 with one sentence and `Retry-After: 60`; `/readyz` says 503",
        "all with the first request after there is room; documents that were being read within two minutes. "
        "Nothing acknowledged is lost",
        ("test_faults.py::test_a_full_data_disk",),
    ),
    Fault(
        "a service's log cannot be written",
        "everything; the console has each line",
        "nothing",
        "with the next line; until then, the console says so once a minute",
        ("test_faults.py::test_a_full_data_disk",),
    ),
    Fault(
        "a worker is killed (SIGKILL) while it reads a document",
        "everything; other jobs as soon as the supervisor has started the worker again",
        "nothing",
        "another worker reads the document, about 80 seconds later at most",
        ("test_faults.py::test_a_killed_worker", "test_faults.py::test_a_killed_job"),
    ),
    Fault(
        "the process that reads a document is killed, for lack of memory",
        "everything",
        "nothing",
        "the document is read once more at once; killed again, it fails for lack of memory",
        ("test_faults.py::test_a_killed_reader",),
    ),
    Fault(
        "an embedder elsewhere is silent, or sends its vectors byte by byte",
        "saves, lists, and searches and answers by words",
        "nothing; in each process one request waits 10.5 seconds, the others of the next 20 seconds do not",
        "it is tried again after 20 seconds; memories get missing vectors within two minutes, passages of documents "
        "within the hour",
        ("test_faults.py::test_an_embedder_that_trickles",),
    ),
    Fault(
        "an embedder elsewhere answers with errors (500)",
        "the same",
        "nothing; in each process one request waits 1.3 seconds for two retries, the others of the next 2 (then 4, "
        "8, 16, 20) seconds do not",
        "it is tried again after that time; missing vectors as above",
        ("test_faults.py::test_an_embedder_that_fails_at_once",),
    ),
    Fault(
        "a web process is killed during an answer",
        "requests of other web processes",
        "the rest of the answer; what was written until then is kept, with **Retry**",
        "the supervisor starts the process again",
        ("test_processes.py::test_a_killed_web_process_leaves_the_text_so_far_and_a_retry",),
    ),
    Fault(
        "a worker is killed while it extracts memories or imports",
        "everything",
        "nothing",
        "another one stores the rest, each thing once",
        (
            "test_processes.py::test_a_worker_killed_in_the_middle_of_an_extraction_stores_everything_once",
            "test_import.py::test_a_worker_killed_while_it_stores_is_followed_by_one_that_stores_the_rest_once",
        ),
    ),
    Fault(
        "all connections to the database are cut",
        "reads, which are tried once more",
        "writes in progress, 503",
        "with the next request",
        (
            "test_database_trouble.py::test_after_every_connection_was_cut_nobody_notices",
            "test_database_trouble.py::test_a_cut_in_the_middle_of_writes_is_503_and_over_at_once",
        ),
    ),
)
HEAD = ("| what happens | what goes on | what is refused | what comes back, and when |", "|---|---|---|---|")


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
