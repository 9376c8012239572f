"""A name for people: the column stays as it is, so nothing is asked of the database."""

from django.db import migrations, models


class Migration(migrations.Migration):
    older_may_run = True
    dependencies = [("chat", "0035_personal_calls")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="sharelink",
                    name="resting",
                    field=models.JSONField(
                        db_column="resting",
                        default=dict,
                        help_text="Ids of memories that were in these messages or used for them, with the keys of those messages.",
                    ),
                ),
                migrations.RenameField("sharelink", old_name="resting", new_name="memories_used"),
            ]
        )
    ]
