"""A key has one holder: what was twice is mended, then the database keeps it so, beside readers and writers.

Of two live rows with one key the one that was changed last keeps it, as a save by that key found it; an expired one
gives way. The history of the others says where their key went. A double that the release before writes in between
makes the index fail and no data wrong: run this again.
"""

from django.db import migrations, models, transaction
from django.db.models import Q
from django.db.models.functions import Coalesce

LOSERS = """
CREATE TEMP TABLE keys_lost ON COMMIT DROP AS
SELECT id, key, went_to FROM (
    SELECT id, key, first_value(public_id) OVER same AS went_to, row_number() OVER same AS rank
    FROM memories_memory WHERE deleted_at IS NULL AND key IS NOT NULL
    WINDOW same AS (
        PARTITION BY workspace_id, key, coalesce(owner_id, 0), coalesce(agent_id, 0)
        ORDER BY expires_at IS NOT NULL AND expires_at <= now(), updated_at DESC, id DESC
    )
) ranked WHERE rank > 1
"""
# The place of a row, as in Memory.place.
PLACE = 'coalesce(-m.owner_id, 1099511627776 + m.agent_id, m.workspace_id)'
MEND = f"""
UPDATE memories_memory m SET key = NULL, updated_at = greatest(now(), m.updated_at + interval '1 microsecond'),
    search = to_tsvector('english', concat_ws(' ', m.summary, m.content, m.category, array_to_string(m.tags, ' ')))
             || array_to_tsvector(ARRAY['at:' || {PLACE}])
FROM keys_lost l WHERE m.id = l.id
"""
WORDS = f"""
DELETE FROM memories_memoryword w USING memories_memory m, keys_lost l
WHERE m.id = l.id AND w.place = {PLACE} AND w.memory_id = m.id
  AND w.lexeme = ANY(tsvector_to_array(to_tsvector('english', l.key)))
  AND w.lexeme NOT IN (SELECT lexeme FROM memories_counted_words(m))
"""
NOTE = """
INSERT INTO memories_revision (memory_id, action, by_id, before, at)
SELECT id, 'key', NULL, jsonb_build_object('key', key, 'key_went_to', went_to), now() FROM keys_lost
"""
INDEX = """
CREATE UNIQUE INDEX CONCURRENTLY memory_key
ON memories_memory (workspace_id, key, coalesce(owner_id, 0), coalesce(agent_id, 0))
WHERE deleted_at IS NULL AND key IS NOT NULL
"""
DROP = 'DROP INDEX CONCURRENTLY IF EXISTS memory_key'  # also what an interrupted building left


def give_each_key_one_holder(apps, schema_editor):
    with transaction.atomic(using=schema_editor.connection.alias), schema_editor.connection.cursor() as cursor:
        for statement in (LOSERS, MEND, WORDS, NOTE):
            cursor.execute(statement)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [('memories', '0017_secret_rules')]

    operations = [
        migrations.AlterField(
            model_name='revision',
            name='action',
            field=models.CharField(choices=[('create', 'Saved'), ('edit', 'Edited'), ('delete', 'Forgotten'), ('restore', 'Restored'), ('evict', 'Made room'), ('merge', 'Merged with an older one'), ('propose', 'Proposed'), ('approve', 'Approved'), ('reject', 'Rejected'), ('hide', 'Hidden: looks like a credential'), ('key', 'Its key went to another'), ('also_said', 'Also said as')], max_length=10),
        ),
        migrations.RunPython(give_each_key_one_holder, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL([DROP, INDEX], [DROP])],
            state_operations=[
                migrations.AddConstraint(
                    model_name='memory',
                    constraint=models.UniqueConstraint(
                        'workspace',
                        'key',
                        Coalesce('owner', 0, output_field=models.BigIntegerField()),
                        Coalesce('agent', 0, output_field=models.BigIntegerField()),
                        name='memory_key',
                        condition=Q(deleted_at=None, key__isnull=False),
                    ),
                ),
            ],
        ),
    ]
