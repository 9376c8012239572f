import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('chat', '0019_answer_sources'),
    ]

    operations = [
        migrations.AddField(
            model_name='message',
            name='only_documents',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), blank=True, help_text='Of a question: the public ids of the documents that its answer may draw on. Null: all; none: none.', null=True, size=None),
        ),
    ]
