"""An edited question, and an answer given anew, keep what they took the place of. No table is rewritten."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("chat", "0007_private_chat_permission")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="superseded_by",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="What stands in its place: an edited question, or another answer.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="supersedes",
                to="chat.message",
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="superseded_at",
            field=models.DateTimeField(
                blank=True, help_text="What was set aside at one time belongs together.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="message",
            name="attempt",
            field=models.PositiveSmallIntegerField(
                default=1, help_text="Counts up with every retry in the same place."
            ),
        ),
    ]
