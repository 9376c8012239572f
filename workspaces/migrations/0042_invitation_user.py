import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

older_may_run = True


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0041_document_drafts"),
    ]

    operations = [
        migrations.AddField(
            model_name="invitation",
            name="user",
            field=models.ForeignKey(
                blank=True,
                help_text="The person it is for. Empty: everyone who has its link.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
