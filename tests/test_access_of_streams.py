"""The rows of the access matrix whose routes read the database from other threads."""

import pytest

from tests.access_docs import PEOPLE
from tests.conftest import Cast
from tests.routes import ROWS, Row
from tests.test_access_matrix import ask, cookies_of, people_of
from tests.world import make_world


@pytest.mark.parametrize("row", [row for row in ROWS if row.in_threads], ids=str)
@pytest.mark.django_db(transaction=True)
def test_who_may(row: Row, cast: Cast) -> None:
    world = make_world(cast)
    cookies = [cookies_of(person, fresh=bool(row.fresh)) for person in people_of(cast)]
    got = [ask(row, world.address(row), world.data(row), each) for each in cookies]
    assert dict(zip(PEOPLE, got, strict=True)) == dict(zip(PEOPLE, row.statuses, strict=True))
