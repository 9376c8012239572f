import traceback

import pytest
from django.db import IntegrityError

from chat import tasks as chat_tasks
from memories import tasks as memory_tasks
from memoryhub.jobs import JobFailed, job


@job
def store(text: str) -> None:
    raise IntegrityError(f"DETAIL:  Failing row contains ({text}).")


def test_a_failed_job_tells_its_kind_and_place_but_no_stored_text() -> None:
    said = "Olive is a " + "vegetarian"  # in two parts, since tracebacks quote source lines
    with pytest.raises(JobFailed) as failure:
        store(said)
    told = "".join(traceback.format_exception(failure.value))
    assert "IntegrityError in store" in told
    assert "test_jobs.py" in told
    assert said not in told


def test_every_job_is_guarded() -> None:
    for module in (memory_tasks, chat_tasks):
        functions = [
            value
            for name, value in vars(module).items()
            if not name.startswith("_")
            and callable(value)
            and getattr(value, "__module__", "") == module.__name__
            and hasattr(value, "__code__")
        ]
        assert functions
        assert [function.__name__ for function in functions if not hasattr(function, "__wrapped__")] == []
