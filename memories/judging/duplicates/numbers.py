"""Numbers, units, dates and times of day in one form each, however they are written."""

import re

from memories.judging.duplicates.lists import word_list, word_set

_UNITS = word_list(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
)
_TENS = {
    word: 10 * i
    for i, word in enumerate(word_list("twenty thirty forty fifty sixty seventy eighty ninety"), 2)
}
_SMALL = {word: number for number, word in enumerate(_UNITS)} | {
    "dozen": 12,
    "couple": 2,
    "twice": 2,
    "pair": 2,
}
_SCALES = {"hundred": 100, "thousand": 1000, "k": 1000, "million": 10**6, "billion": 10**9, "bn": 10**9}
_ORDINALS = {
    word: number
    for number, word in enumerate(
        word_list(
            "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
            "fourteenth "
            "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
        ),
        1,
    )
} | {"thirtieth": 30, "once": 1}
_FRACTIONS = {"half": "0.5", "quarter": "0.25", "double": "x2", "triple": "x3"}

_MONTHS = word_list("january february march april may june july august september october november december")
MONTH = {month: month for month in _MONTHS} | {month[:3]: month for month in _MONTHS if month != "may"}
MONTH["sept"] = "september"
_DAYS = word_list("monday tuesday wednesday thursday friday saturday sunday")
DAY = {form: day for day in _DAYS for form in (day, day + "s", day[:3])} | {
    "tues": "tuesday", "thur": "thursday", "thurs": "thursday", "weds": "wednesday",
}  # fmt: skip
for _word in ("sat", "sun", "mar", "jan", "wed", "dec"):  # words of their own as well, but with a capital
    DAY.pop(_word, None)
    MONTH.pop(_word, None)
CAPITAL_ONLY = {"Sat": "saturday", "Sun": "sunday", "Wed": "wednesday"}
CAPITAL_ONLY |= {"Mar": "march", "Jan": "january", "Dec": "december", "May": "may"}

TIME = word_set("""today tomorrow yesterday tonight morning mornings afternoon afternoons evening evenings night nights
    noon midnight midday weekend weekends weekday weekdays spring summer autumn fall winter christmas
    easter thanksgiving halloween ramadan daily weekly monthly yearly nightly hourly fortnightly biweekly
    quarterly semester daytime lunchtime dawn dusk sunrise sunset next last previous upcoming ago later
    earlier soon recently immediately breakfast lunch dinner
    """)
_PERIODS = {
    "every-day": "daily", "everyday": "daily", "every-week": "weekly", "every-month": "monthly",
    "every-year": "yearly", "annually": "yearly", "annual": "yearly", "every-night": "nightly",
    "every-hour": "hourly", "every-morning": "morning", "every-evening": "evening",
    "every-weekend": "weekend", "midday": "noon", "fall": "autumn", "upcoming": "next", "previous": "last",
    "supper": "dinner",
}  # fmt: skip
_PERIODS |= {word + "s": word for word in word_list("morning afternoon evening night weekend weekday")}

_UNIT = {
    form: line.split()[0]
    for line in """
km kilometer kilometre kms
mile mi
meter metre m
cm centimeter centimetre
mm millimeter millimetre
foot feet ft
inch in.
yard yd
kg kilogram kilo kgs
gram g gr
lb pound lbs
oz ounce
ton tonne
liter litre l
ml milliliter millilitre
gallon gal
cup
tablespoon tbsp
teaspoon tsp
celsius °c centigrade
fahrenheit °f
second sec
minute min
hour hr h
day
week wk
month
year yr
ms millisecond
dollar usd $ bucks buck
euro eur €
gbp £ quid
yen jpy ¥
rupee inr ₹
franc chf
percent % percentage
kb kilobyte
mb megabyte
gb gigabyte gig
tb terabyte
px pixel
mg milligram
mcg microgram
calorie kcal
degree °
mph
kmh km/h kph
watt w
kilowatt kw
volt v
ghz
mhz
""".strip().splitlines()
    for word in line.split()
    for form in (word, word + "s" if len(word) > 2 else word)
}

_TOKEN = re.compile(
    r"[a-z]+@[\w.]+|https?://\S+|\d{4}-\d{2}-\d{2}|\d{1,2}:\d{2}(?::\d{2})?|\d+(?:st|nd|rd|th)\b|"
    r"\d+(?:[.,]\d+)*|[$€£¥₹%°][cf]?\b|[$€£¥₹%°]|"
    r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?(?:[-_.+#/]*[^\W_]+)*\+{0,2}#?",
    re.IGNORECASE,
)


def tokens(text: str) -> list[str]:
    """Split a text into words, numbers and signs, keeping the case."""
    return _TOKEN.findall(text)


def unit_of(word: str) -> str | None:
    """The unit a word stands for, in one form."""
    return _UNIT.get(word)


def time_word(word: str) -> str | None:
    """The date or time word in one form; `word` keeps its case, since "May" and "may" are two words."""
    if word in CAPITAL_ONLY:
        return CAPITAL_ONLY[word]
    low = word.lower().removesuffix("'s").removesuffix("\u2019s")
    if low in MONTH and low != "may":
        return MONTH[low]
    if low in DAY:
        return DAY[low]
    low = _PERIODS.get(low, low)
    return low if low in TIME else None


def number_word(word: str) -> str | None:
    """The value of a single number written as a word or with an ordinal ending."""
    if match := re.fullmatch(r"(\d+)(?:st|nd|rd|th)", word):
        return match[1]
    if word in _FRACTIONS:
        return _FRACTIONS[word]
    for table in (_SMALL, _TENS, _ORDINALS, _SCALES):
        if word in table:
            return str(table[word])
    if "-" in word:
        tens, _, ones = word.partition("-")
        units = _SMALL | _ORDINALS
        if tens in _TENS and 0 < units.get(ones, 0) < 10:
            return str(_TENS[tens] + units[ones])
    return None


def merge_scales(values: list[str]) -> list[str]:
    """Multiply and add what was written in several words: 2 1000 -> 2000, 20 5 -> 25."""
    merged: list[str] = []
    for value in values:
        previous = merged[-1] if merged and merged[-1].isdigit() else None
        if previous and value in {str(scale) for scale in _SCALES.values()} and int(previous) < int(value):
            merged[-1] = str(int(previous) * int(value))
        elif (
            previous
            and value.isdigit()
            and previous in {str(t) for t in _TENS.values()}
            and 0 < int(value) < 10
        ):
            merged[-1] = str(int(previous) + int(value))
        else:
            merged.append(value)
    return merged
