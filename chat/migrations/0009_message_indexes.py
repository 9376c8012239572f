"""What was set aside is found by what took its place, and messages by their words. Writers go on meanwhile."""

import django.contrib.postgres.indexes
import django.contrib.postgres.search
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

# The place as a lexeme that no text can produce, since the parser splits at the colon (docs/decisions/0003).
WORDS = """
    to_tsvector('simple', left({message}.content, 50000))
    || array_to_tsvector(ARRAY['at:' || chat.workspace_id])
"""
KEEP = f"""
CREATE FUNCTION chat_keep_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chat_messagewords (message_id, words)
    SELECT NEW.id, {WORDS.format(message="NEW")} FROM chat_chat chat WHERE chat.id = NEW.chat_id
    ON CONFLICT (message_id) DO UPDATE SET words = excluded.words;
    RETURN NULL;
END $$;
CREATE TRIGGER chat_keep_words AFTER INSERT OR UPDATE OF content, status ON chat_message
    FOR EACH ROW WHEN (NEW.status <> 'streaming') EXECUTE FUNCTION chat_keep_words();

CREATE FUNCTION chat_forget_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM chat_messagewords WHERE message_id = OLD.id;
    RETURN OLD;
END $$;
CREATE TRIGGER chat_forget_words BEFORE DELETE ON chat_message
    FOR EACH ROW EXECUTE FUNCTION chat_forget_words();
"""
LEAVE = """
DROP TRIGGER chat_keep_words ON chat_message;
DROP TRIGGER chat_forget_words ON chat_message;
DROP FUNCTION chat_keep_words();
DROP FUNCTION chat_forget_words();
"""
FILL = f"""
INSERT INTO chat_messagewords (message_id, words)
SELECT message.id, {WORDS.format(message="message")}
FROM chat_message message JOIN chat_chat chat ON chat.id = message.chat_id
WHERE message.id BETWEEN %s AND %s AND message.status <> 'streaming'
ON CONFLICT (message_id) DO NOTHING
"""
AT_ONCE = 5_000


def fill(apps, schema_editor):
    """What was said before, a few thousand at a time; what is said meanwhile the trigger takes care of."""
    newest = apps.get_model("chat", "Message").objects.aggregate(newest=models.Max("id"))["newest"] or 0
    with schema_editor.connection.cursor() as cursor:
        for start in range(1, newest + 1, AT_ONCE):
            cursor.execute(FILL, [start, start + AT_ONCE - 1])


class Migration(migrations.Migration):

    atomic = False
    dependencies = [("chat", "0008_earlier_versions")]

    operations = [
        AddIndexConcurrently(
            "message",
            models.Index(
                condition=models.Q(("superseded_by__isnull", False)),
                fields=["superseded_by"],
                name="message_superseded",
            ),
        ),
        migrations.CreateModel(
            name="MessageWords",
            fields=[
                ("message_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("words", django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fastupdate=False, fields=["words"], name="message_words"
                    )
                ],
            },
        ),
        migrations.RunSQL(KEEP, LEAVE),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
