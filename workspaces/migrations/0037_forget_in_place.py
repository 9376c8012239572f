"""The triggers that take passages along say where those are: in tables in parts one part is looked at, not all."""

from django.db import migrations

FORGET = """
CREATE OR REPLACE FUNCTION workspaces_forget_passages() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    places bigint[];
BEGIN
    EXECUTE format('SELECT array_agg(DISTINCT %s) FROM gone m', TG_ARGV[2]) INTO places;
    EXECUTE format('
        DELETE FROM workspaces_passagevector v USING gone
        WHERE v.place = ANY($1) AND v.kind = %s AND v.ref = gone.id
    ', TG_ARGV[0]) USING places;
    EXECUTE format('
        DELETE FROM workspaces_passageword w USING (
            SELECT m.id, %s AS place, c.lexeme FROM gone m, LATERAL %s(ROW(m.*)::%I) c
        ) said
        WHERE w.place = said.place AND w.lexeme = said.lexeme AND w.kind = %s AND w.ref = said.id
          AND w.place = ANY($1)
    ', TG_ARGV[2], TG_ARGV[1], TG_TABLE_NAME, TG_ARGV[0]) USING places;
    RETURN NULL;
END $$;
"""
BEFORE = """
CREATE OR REPLACE FUNCTION workspaces_forget_passages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM workspaces_passagevector v USING gone
    WHERE v.kind = TG_ARGV[0]::smallint AND v.ref = gone.id;
    EXECUTE format('
        DELETE FROM workspaces_passageword w USING (
            SELECT m.id, %s AS place, c.lexeme FROM gone m, LATERAL %s(ROW(m.*)::%I) c
        ) said
        WHERE w.place = said.place AND w.lexeme = said.lexeme AND w.kind = %s AND w.ref = said.id
    ', TG_ARGV[2], TG_ARGV[1], TG_TABLE_NAME, TG_ARGV[0]);
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0036_data_requests")]
    operations = [migrations.RunSQL(FORGET, BEFORE)]
