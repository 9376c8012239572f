"""Search for a text in every column of every table, and in packed jobs of the queue."""

import json
import re

from django.db import connection
from django_q.models import Failure, OrmQ, Success

_TABLES = """
SELECT quote_ident(table_name) FROM information_schema.tables
WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY 1
"""
# A row as JSON contains all its columns: texts, json, arrays, tsvectors, bytes in hexadecimal.
_COUNT = "SELECT count(*) FROM {table} t WHERE to_jsonb(t)::text ILIKE ANY(%s)"


def places_with(text: str) -> list[str]:
    """Return the tables with the text as ``table (rows)``, ignoring case. Bytes and escaped JSON count as well."""
    once = json.dumps(text, ensure_ascii=False)[1:-1]
    twice = json.dumps(once, ensure_ascii=False)[1:-1]
    forms = {text, once, twice, text.encode().hex()}
    patterns = ["%" + re.sub(r"([\\%_])", r"\\\1", form) + "%" for form in forms]
    found = []
    with connection.cursor() as cursor:
        cursor.execute(_TABLES)
        for (table,) in cursor.fetchall():
            cursor.execute(_COUNT.format(table=table), [patterns])
            if number := cursor.fetchone()[0]:
                found.append(f"{table} ({number})")
    jobs = [repr(job.task) for job in OrmQ.objects.all()]
    for kind in (Success, Failure):
        jobs += [repr((task.args, task.kwargs, task.result)) for task in kind.objects.all()]
    return found + ["the queue" for job in jobs if text.lower() in job.lower()]
