from django.db import migrations, models

older_may_run = True


class Migration(migrations.Migration):
    dependencies = [
        ("workspaces", "0040_no_row_policies"),
    ]

    operations = [
        migrations.AddField(
            model_name="document",
            name="drafted_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When it was put in a composer, until its message is sent. So long it is its owner's and not "
                "in use: deleted_at is the same moment (workspaces.documents.drafts).",
                null=True,
            ),
        ),
    ]
