from django.db import migrations, models


class Migration(migrations.Migration):

    older_may_run = True
    dependencies = [
        ('memories', '0026_own_row'),
    ]

    operations = [
        migrations.AddField(
            model_name='receiptitem',
            name='mentions',
            field=models.JSONField(db_default=[], default=list, help_text='Of the content, from and to: what was asked about, too.'),
        ),
    ]
