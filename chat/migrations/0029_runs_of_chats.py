from django.db import migrations, models

# Those that exist know their chat by the answer that they were made for.
TAKE_OVER = """
UPDATE chat_run SET chat_id = chat_message.chat_id FROM chat_message WHERE chat_message.id = chat_run.answer_id
"""


class Migration(migrations.Migration):
    dependencies = [("chat", "0028_saved_prompts")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="chat",
            field=models.ForeignKey(
                blank=True,
                help_text="Whose research it is, or was done again from: who may read it follows that, whoever did it again.",
                null=True,
                on_delete=models.deletion.CASCADE,
                related_name="runs",
                to="chat.chat",
            ),
        ),
        migrations.AddField(
            model_name="runtemplate",
            name="chat",
            field=models.ForeignKey(
                blank=True, null=True, on_delete=models.deletion.CASCADE, related_name="+", to="chat.chat"
            ),
        ),
        migrations.RunSQL(TAKE_OVER, migrations.RunSQL.noop),
    ]
