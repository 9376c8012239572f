from django.db import migrations

# What was made of a chat's research before 0029 does not know its chat, and stayed open when that was made private. It is
# known by what was asked, which copies and templates have word for word. Where the chat is private that is enough, for it
# is what nobody else may read; else the plan is the same, too.
FOLLOW = """
UPDATE {table} AS made SET {values} FROM chat_chat AS chat
WHERE made.chat_id IS NULL AND made.mode = 'research' AND chat.id = (
    SELECT source.chat_id FROM chat_run AS source JOIN chat_chat AS its ON its.id = source.chat_id
    WHERE source.answer_id IS NOT NULL AND source.workspace_id = made.workspace_id AND source.mode = made.mode
        AND source.created_at <= made.created_at AND source.objective = made.objective
        AND (its.is_private OR source.plan IS NOT DISTINCT FROM made.plan)
    ORDER BY its.is_private DESC, source.created_at DESC LIMIT 1
)
"""


class Migration(migrations.Migration):
    dependencies = [("chat", "0031_run_costs")]

    operations = [
        migrations.RunSQL(FOLLOW.format(table=table, values=values), migrations.RunSQL.noop)
        for table, values in (
            ("chat_run", "chat_id = chat.id, is_private = chat.is_private"),
            ("chat_runtemplate", "chat_id = chat.id"),
        )
    ]
