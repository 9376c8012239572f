from django.db import migrations, models


class Migration(migrations.Migration):


    dependencies = [
        ('chat', '0101_searched_messages'),
    ]

    operations = [
        migrations.AlterField(
            model_name='step',
            name='findings',
            field=models.JSONField(blank=True, default=list, help_text="The answer's words, the id of the memory that speaks of them, whether they agree; of files that were waited for, the id of the document, its status and how much of it is found by its meaning."),
        ),
        migrations.AlterField(
            model_name='step',
            name='kind',
            field=models.CharField(choices=[('plan', 'Plan'), ('thought', 'Thought of the model'), ('check', 'Check against memory'), ('research', 'Research'), ('reading', 'Waiting for files')], max_length=10),
        ),
        migrations.AlterField(
            model_name='step',
            name='outcome',
            field=models.CharField(blank=True, choices=[('planned', 'Planned'), ('thought', 'Thought'), ('agrees', 'Nothing differs'), ('differs', 'Something differs'), ('nothing', 'Nothing to compare with'), ('off', 'Memory is off'), ('read', 'Read'), ('stopped', 'Stopped'), ('timeout', 'Took too long'), ('error', 'Did not work')], help_text='Empty while it runs.', max_length=10),
        ),
    ]
