"""Up to where in the database's log each person's own writes go (memoryhub.database.replicas.written).

Unlogged: noting it waits for no disk and no replica, and after a crash of the server nothing of it is of use.
"""

from django.db import migrations

WRITTEN = """
CREATE UNLOGGED TABLE workspaces_written (
    person bigint PRIMARY KEY, lsn pg_lsn NOT NULL, at timestamp with time zone NOT NULL
) WITH (fillfactor = 50)
"""


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0032_passages_of_people")]
    operations = [migrations.RunSQL(WRITTEN, "DROP TABLE workspaces_written")]
