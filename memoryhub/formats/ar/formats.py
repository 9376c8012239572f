"""Day before month, as Django's own date of this language; of a date with its hour it has none."""

DATETIME_FORMAT = "j F، Y، g:i A"
