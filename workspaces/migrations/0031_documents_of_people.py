"""Documents may be one person's alone; their passages lie at that person's place of the index then."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

HELP = "Who alone sees it, in every workspace. It lies in their own one. Empty: every member of the workspace."
TRIGGER = """
DROP TRIGGER workspaces_forget_passages ON workspaces_documentpassage;
CREATE TRIGGER workspaces_forget_passages AFTER DELETE ON workspaces_documentpassage
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
EXECUTE FUNCTION workspaces_forget_passages('2', 'documents_counted_words', '{place}');
"""


def owner(help_text, **options):
    return models.ForeignKey(
        blank=True,
        help_text=help_text,
        null=True,
        on_delete=django.db.models.deletion.CASCADE,
        related_name="+",
        to=settings.AUTH_USER_MODEL,
        **options,
    )


def alone(fields, name, **condition):
    return models.UniqueConstraint(condition=models.Q(("deleted_at", None), **condition), fields=fields, name=name)


class Migration(migrations.Migration):

    dependencies = [("workspaces", "0030_people_retention")]

    operations = [
        migrations.AlterField("artifact", "owner", owner(HELP)),
        migrations.AddField("document", "owner", owner(HELP)),
        migrations.AddField("documentpassage", "owner", owner("The document's.", db_index=False)),
        migrations.RemoveConstraint("document", "one_document_a_content"),
        migrations.AddConstraint(
            "document", alone(("workspace", "sha256"), "one_document_a_content", owner=None)
        ),
        migrations.AddConstraint(
            "document", alone(("owner", "sha256"), "one_own_document_a_content", owner__isnull=False)
        ),
        migrations.RunSQL(
            TRIGGER.format(place="coalesce(-m.owner_id, m.workspace_id)"), TRIGGER.format(place="m.workspace_id")
        ),
    ]
