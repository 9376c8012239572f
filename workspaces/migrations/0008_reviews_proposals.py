from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('workspaces', '0007_short_term_choices')]

    operations = [
        migrations.AddField(
            model_name='workspace',
            name='reviews_proposals',
            field=models.BooleanField(default=False, help_text='What viewers or models propose waits for an editor.'),
        ),
    ]
