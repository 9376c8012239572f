"""The tables of vectors and words are the index's now (workspaces 0014), and memories a kind of what it finds."""

from django.db import migrations

FORGET = """
DROP TRIGGER memories_forget_words ON memories_memory;
DROP FUNCTION memories_forget_words();
CREATE TRIGGER workspaces_forget_passages AFTER DELETE ON memories_memory
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION workspaces_forget_passages(
    '1', 'memories_counted_words', 'coalesce(-m.owner_id, 1099511627776 + m.agent_id, m.workspace_id)');
"""
FORGET_BACK = """
DROP TRIGGER workspaces_forget_passages ON memories_memory;
CREATE FUNCTION memories_forget_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM memories_memoryword w
    WHERE w.place = coalesce(-OLD.owner_id, 1099511627776 + OLD.agent_id, OLD.workspace_id) AND w.memory_id = OLD.id
      AND w.lexeme IN (SELECT lexeme FROM memories_counted_words(OLD));
    RETURN OLD;
END $$;
CREATE TRIGGER memories_forget_words BEFORE DELETE ON memories_memory
FOR EACH ROW EXECUTE FUNCTION memories_forget_words();
"""


class Migration(migrations.Migration):
    dependencies = [("memories", "0019_kept_copies"), ("workspaces", "0015_passage_keys")]
    operations = [
        migrations.RunSQL(FORGET, FORGET_BACK),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel(name)
                for name in (
                    "MemoryEmbedding", "MemoryWord", "EmbeddingModel", "PlaceStatistics", "CommonWord", "VectorIndex",
                )
            ],
        ),
    ]
