"""Which answers rest on something personal, and those that are stored already marked by their receipts and calls.

What an answer was shown of other chats before this is recorded nowhere.
"""

import django.contrib.postgres.fields
from django.db import migrations, models


# Answers that were given a memory: by their receipts, tool calls and steps.
GIVEN = """
WITH given AS (
    SELECT m.id, y.owner_id, y.workspace_id FROM chat_message m
    JOIN memories_receipt r ON r.message_id = m.public_id
    JOIN memories_receiptitem i ON i.receipt_id = r.id AND i.used
    JOIN memories_memory y ON y.id = i.memory_id
    UNION ALL
    SELECT t.message_id, y.owner_id, y.workspace_id FROM chat_toolcall t
    JOIN memories_memory y ON y.public_id = ANY (t.memory_ids)
    UNION ALL
    SELECT t.message_id, y.owner_id, y.workspace_id FROM chat_step t
    JOIN memories_memory y ON y.public_id = ANY (t.memory_ids)
)
"""
MARK = (
    "UPDATE chat_run SET held_personal = true WHERE is_private",
    f"""{GIVEN}
    UPDATE chat_message SET personal = 'held' WHERE id IN (SELECT id FROM given WHERE owner_id IS NOT NULL)
    OR id IN (SELECT message_id FROM chat_toolcall WHERE held_personal)
    OR id IN (SELECT answer_id FROM chat_run WHERE is_private)
    OR id IN (SELECT s.message_id FROM chat_answersource s JOIN workspaces_document d ON d.id = s.document_id
              WHERE d.owner_id IS NOT NULL)
    """,  # noqa: S608  constants only
    f"""{GIVEN}
    UPDATE chat_message m SET stays_here = true FROM given, chat_chat c, workspaces_workspace w
    WHERE given.id = m.id AND c.id = m.chat_id AND w.id = given.workspace_id AND w.local_only AND w.id <> c.workspace_id
    """,  # noqa: S608  constants only
    """
    UPDATE chat_message m SET personal = 'seen' WHERE role = 'assistant' AND personal = '' AND EXISTS (
        SELECT 1 FROM chat_message p WHERE p.chat_id = m.chat_id AND p.id < m.id AND p.personal = 'held')
    """,
    """
    UPDATE chat_message m SET stays_here = true WHERE role = 'assistant' AND EXISTS (
        SELECT 1 FROM chat_message p WHERE p.chat_id = m.chat_id AND p.id < m.id AND p.stays_here)
    """,
    """
    UPDATE chat_compaction c SET is_marked = true WHERE EXISTS (
        SELECT 1 FROM chat_message p WHERE p.chat_id = c.chat_id AND p.id <= c.upto_id
        AND (p.personal <> '' OR p.stays_here))
    """,
    """
    UPDATE chat_shorttermmemory s SET
        personal_at = (SELECT min(created_at) FROM chat_message p WHERE p.chat_id = s.chat_id AND p.personal <> ''),
        stays_here = EXISTS (SELECT 1 FROM chat_message p WHERE p.chat_id = s.chat_id AND p.stays_here)
    """,
)


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0038_run_status_words"),
        ("memories", "0027_receipt_mentions"),
        ("workspaces", "0039_usernames_with_apostrophes"),
    ]

    operations = [
        migrations.AddField(
            model_name="chat",
            name="opened_at",
            field=models.DateTimeField(
                blank=True,
                editable=False,
                help_text="When it was last a private chat that its creator opened to the workspace. Empty: never.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="compaction",
            name="is_marked",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="Whether an answer is in it that not every reader, or not every model, may be shown.",
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="other_chats",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=32),
                blank=True,
                default=list,
                editable=False,
                help_text="Of an answer: the public ids of the other chats that it was shown in short.",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="personal",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "Nothing personal"),
                    ("seen", "Written with an answer in view that was given something personal"),
                    ("held", "Given something personal"),
                ],
                default="",
                editable=False,
                help_text="Of an answer: whether it rests on something of somebody's own. Later readers do not see it.",
                max_length=4,
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="stays_here",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="Of an answer: whether it rests on another workspace's text that never leaves this machine.",
            ),
        ),
        migrations.AddField(
            model_name="shorttermmemory",
            name="personal_at",
            field=models.DateTimeField(
                blank=True,
                editable=False,
                help_text="When the first personal answer that it tells of was written. Empty: it tells of none.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="shorttermmemory",
            name="stays_here",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="Whether it tells of another workspace's text that never leaves this machine.",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="held_personal",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="It was told of something personal: it stays its person's own when its chat is opened.",
            ),
        ),
        migrations.RunSQL([(sql, None) for sql in MARK], migrations.RunSQL.noop),
    ]
