"""The words of memories are counted as workspaces 0019 says, those of memories that are there as well."""

from django.db import migrations

from workspaces.index.recounting import Recount

BEFORE = """
CREATE FUNCTION memories_counted_words(m memories_memory) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE AS $$
    SELECT lexeme, sum(count)::float8 FROM (
        SELECT lexeme, 3 * cardinality(positions) AS count FROM unnest(to_tsvector('english',
            concat_ws(' ', m.key, m.summary, m.content, m.category, array_to_string(m.tags, ' '))))
        UNION ALL
        SELECT lexeme, cardinality(positions) FROM unnest(to_tsvector('english', m.source_excerpt))
        UNION ALL
        SELECT lexeme, 1 FROM unnest(to_tsvector('english',
            to_char(m.created_at AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY')))
    ) counted GROUP BY lexeme
$$;
"""
COUNTED = """
CREATE FUNCTION memories_counted_words(m memories_memory) RETURNS TABLE (lexeme text, count float8)
LANGUAGE sql STABLE AS $$
    SELECT lexeme, sum(count)::float8 FROM (
        SELECT lexeme, 3 * count AS count FROM workspaces_words(
            concat_ws(' ', m.key, m.summary, m.content, m.category, array_to_string(m.tags, ' ')))
        UNION ALL
        SELECT lexeme, count FROM workspaces_words(m.source_excerpt)
        UNION ALL
        SELECT lexeme, 1 FROM workspaces_words(to_char(m.created_at AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY'))
    ) counted GROUP BY lexeme
$$;
"""
MEMORIES = Recount(
    1, "memories_memory", "memories_counted_words", "coalesce(-m.owner_id, 1099511627776 + m.agent_id, m.workspace_id)",
    "m.deleted_at IS NULL", before=BEFORE, after=COUNTED,
)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("memories", "0022_receipt_strength"), ("workspaces", "0019_words")]
    operations = [migrations.RunPython(MEMORIES.forwards, MEMORIES.backwards)]
