from django.db import migrations, models


class Migration(migrations.Migration):


    dependencies = [
        ('workspaces', '0101_imported_marks'),
    ]

    operations = [
        migrations.AlterField(
            model_name='document',
            name='status',
            field=models.CharField(choices=[('waiting', 'Waiting'), ('reading', 'Being read'), ('indexing', 'Found by words'), ('ready', 'Ready'), ('failed', 'Could not be read')], default='waiting', max_length=10),
        ),
    ]
