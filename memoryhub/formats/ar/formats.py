"""Arabic date formats with the day before the month, which Django lacks for dates with a time."""

DATETIME_FORMAT = "j F، Y، g:i A"
