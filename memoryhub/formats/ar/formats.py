"""Arabic date formats: day before month, also in dates with a time, which Django's own lack."""

DATETIME_FORMAT = "j F، Y، g:i A"
