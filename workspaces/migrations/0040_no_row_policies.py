"""Drop the policies, functions and rights of row-level security, where they were turned on (decision 0032)."""

from django.db import migrations

DROP = r"""
DO $$
DECLARE
    each record;
    home text := quote_ident(current_schema());
BEGIN
    FOR each IN
        SELECT p.polname, p.polrelid::regclass AS of_table FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE p.polname LIKE 'memoryhub\_%' AND c.relnamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('DROP POLICY %I ON %s', each.polname, each.of_table);
    END LOOP;
    FOR each IN
        SELECT c.oid::regclass AS of_table FROM pg_class c
        WHERE c.relrowsecurity AND c.relnamespace = current_schema()::regnamespace
        AND NOT EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid)
    LOOP
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', each.of_table);
    END LOOP;
    DROP FUNCTION IF EXISTS memoryhub_become(bigint);
    DROP FUNCTION IF EXISTS memoryhub_knows(bigint);
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'memoryhub_rows') THEN
        EXECUTE format('REVOKE ALL ON SCHEMA %s FROM memoryhub_rows', home);
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %s FROM memoryhub_rows', home);
        EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA %s FROM memoryhub_rows', home);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %s REVOKE ALL ON TABLES FROM memoryhub_rows', home);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA %s REVOKE ALL ON SEQUENCES FROM memoryhub_rows', home);
    END IF;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0039_usernames_with_apostrophes")]
    operations = [migrations.RunSQL(DROP, migrations.RunSQL.noop)]
