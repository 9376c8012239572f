from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0034_run_entries_index")]

    operations = [
        migrations.AddField(
            model_name="toolcall",
            name="held_personal",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="It held something of its person's own: no link shows its answer.",
            ),
        ),
    ]
