"""Empty tables after a test that commits: only those it touched, as Django's flush of all takes half a second."""

import time
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import TransactionTestCase

# Tables that migrations fill, equal for every test.
KEPT = (
    "django_content_type",
    "auth_permission",
    "auth_group_permissions",
    "django_migrations",
    "django_q_schedule",
)
SMALL = 8 * 8192  # bytes; up to this size a table's rows are deleted, a longer one is truncated
TOUCHED = """
SELECT relname, pg_relation_size(oid) + CASE reltoastrelid WHEN 0 THEN 0 ELSE pg_relation_size(reltoastrelid) END
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0
"""


def empty_tables(test: Any) -> None:
    """Empty the touched tables; again if a thread of the test, such as an interrupted stream's, was still writing."""
    for last in (False, False, True):
        try:
            return _empty()
        except IntegrityError:
            if last:
                raise
            time.sleep(0.5)


def _empty() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(TOUCHED)
        touched = {name: size for name, size in cursor.fetchall() if name not in KEPT}
        if long := [f'"{name}"' for name, size in touched.items() if size > SMALL]:
            cursor.execute(f"TRUNCATE {', '.join(long)} CASCADE")
        cursor.execute(
            "SET LOCAL memoryhub.audit_retention = 'on'"
        )  # the audit log's foreign keys prevent other deletions
        # In one query instead of about eighty
        cursor.execute("; ".join(f'DELETE FROM "{name}"' for name in touched))


@pytest.fixture(scope="session", autouse=True)
def _tables_are_emptied_quickly() -> None:
    TransactionTestCase._fixture_teardown = empty_tables  # type: ignore[method-assign]
