import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Of what is there: the first who owned it and still does.
FIRST_OWNERS = """
UPDATE workspaces_workspace AS place SET made_by_id = first.user_id
FROM (
    SELECT DISTINCT ON (workspace_id) workspace_id, user_id FROM workspaces_membership
    WHERE role = 'owner' ORDER BY workspace_id, id
) AS first
WHERE place.id = first.workspace_id AND place.default_of_id IS NULL
"""


class Migration(migrations.Migration):

    dependencies = [('workspaces', '0010_seal_two_factor')]

    operations = [
        migrations.AddField(
            model_name='workspace',
            name='made_by',
            field=models.ForeignKey(
                blank=True,
                help_text="Who is charged for it. Nobody, if it is somebody's default one.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name='+',
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunSQL(FIRST_OWNERS, migrations.RunSQL.noop),
    ]
