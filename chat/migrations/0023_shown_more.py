from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0022_web_and_templates")]

    operations = [
        migrations.AddField(
            model_name="passingturn",
            name="shown_more",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="It was shown more than these: pictures, files, too many.",
            ),
        ),
        migrations.AlterField(
            model_name="passingturn",
            name="shown",
            field=models.JSONField(
                blank=True, default=list, help_text="Words before the model that no person said."
            ),
        ),
    ]
