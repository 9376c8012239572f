"""Answers keep the HTML they are shown as. No table is rewritten, and nothing is rendered here: pages have it made."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("chat", "0013_personal_of")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="html",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="An answer's content as it is shown. Empty: as it was written. Written by chat.rendering.rendered.",
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="html_of",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="Marks the content, and the renderer, that the HTML was made of and by.",
                max_length=32,
            ),
        ),
    ]
