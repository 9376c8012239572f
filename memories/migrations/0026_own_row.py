from django.db import migrations, models


class Migration(migrations.Migration):

    older_may_run = True
    dependencies = [
        ('memories', '0025_brought_by'),
    ]

    operations = [
        migrations.AddField(
            model_name='memory',
            name='own_row',
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
    ]
