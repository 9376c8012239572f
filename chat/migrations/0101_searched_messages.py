from django.db import migrations, models


class Migration(migrations.Migration):

    older_may_run = True

    dependencies = [
        ('chat', '0100_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='import',
            name='began_at',
            field=models.DateTimeField(blank=True, help_text='When the look or the storing began, or went on after a stop.', null=True),
        ),
        migrations.AddField(
            model_name='import',
            name='began_progress',
            field=models.FloatField(db_default=0.0, default=0, help_text='How far it was then.'),
        ),
        migrations.AddField(
            model_name='import',
            name='read_lines',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='Of the entry after those, where it is taken in parts.'),
        ),
        migrations.AddField(
            model_name='import',
            name='searched',
            field=models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict, help_text="How many of the importer's messages the preview searched for memories."),
        ),
    ]
