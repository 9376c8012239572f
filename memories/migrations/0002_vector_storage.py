"""How vectors and words lie on disk, and what SQL needs to count a memory's words."""

from django.db import migrations

# Vectors that recall scans stay inside their rows: following each into the TOAST table is 3 to 10 times slower.
# The statement's own vector is read for a few rows at a time and lies outside.
STORAGE = """
ALTER TABLE memories_memoryembedding ALTER COLUMN embedding SET STORAGE MAIN;
ALTER TABLE memories_memoryembedding ALTER COLUMN statement SET STORAGE EXTERNAL;
ALTER TABLE memories_memoryembedding SET (toast_tuple_target = 128);
"""
STORAGE_BACK = """
ALTER TABLE memories_memoryembedding ALTER COLUMN embedding SET STORAGE EXTERNAL;
ALTER TABLE memories_memoryembedding RESET (toast_tuple_target);
"""

# The weight rides along in the index, so that a sum over a word's memories never visits the table.
COVERING = """
ALTER TABLE memories_memoryword DROP CONSTRAINT memories_memoryword_pkey;
ALTER TABLE memories_memoryword ADD PRIMARY KEY (place, lexeme, memory_id) INCLUDE (weight);
"""
COVERING_BACK = """
ALTER TABLE memories_memoryword DROP CONSTRAINT memories_memoryword_pkey;
ALTER TABLE memories_memoryword ADD PRIMARY KEY (place, lexeme, memory_id);
"""

# Its own words count three times, those of the messages it came from once, and its date's once.
COUNTED = """
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
CREATE FUNCTION memories_forget_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM memories_memoryword w
    WHERE w.place = coalesce(-OLD.owner_id, OLD.workspace_id) AND w.memory_id = OLD.id
      AND w.lexeme IN (SELECT lexeme FROM memories_counted_words(OLD));
    RETURN OLD;
END $$;
CREATE TRIGGER memories_forget_words BEFORE DELETE ON memories_memory
FOR EACH ROW EXECUTE FUNCTION memories_forget_words();
"""
COUNTED_BACK = """
DROP TRIGGER memories_forget_words ON memories_memory;
DROP FUNCTION memories_forget_words();
DROP FUNCTION memories_counted_words(memories_memory);
"""


class Migration(migrations.Migration):
    dependencies = [("memories", "0001_initial")]
    operations = [
        migrations.RunSQL(STORAGE, STORAGE_BACK),
        migrations.RunSQL(COVERING, COVERING_BACK),
        migrations.RunSQL(COUNTED, COUNTED_BACK),
    ]
