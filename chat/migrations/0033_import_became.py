from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0032_made_of_chats_research")]

    operations = [
        migrations.AddField(
            model_name="importrow",
            name="became",
            field=models.CharField(
                blank=True,
                default="",
                help_text="The id of what was made of it, or changed by it.",
                max_length=32,
            ),
        ),
    ]
