from datetime import UTC, date, datetime, timedelta

from memories.recalling.question import asks, mentions_number, mentions_time, read_question, subject

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)  # a Wednesday


def days_meant(
    text: str,
) -> tuple[date | None, date | None] | tuple[int | None, int | None, int | None] | None:
    """Return a range of days, or (year, month, day), or None."""
    dates = read_question(text, NOW).dates
    if dates is None:
        return None
    return (dates.first, dates.last) if dates.first else (dates.year, dates.month, dates.day)


def test_names_are_capitalised_words_without_months_and_question_words() -> None:
    cases: list[tuple[str, set[str]]] = [
        ("What did Anna say?", {"anna"}),
        ("Anna's bike and Ben\u2019s car", {"anna", "ben"}),
        ("the Joneses' house", {"joneses"}),
        ("Did Jean-Luc meet O'Brien?", {"jean-luc", "o'brien"}),
        ("Is NATO older than the EU?", {"nato", "eu"}),
        ("What happened in May and in March?", set()),
        ("Where did I put my keys?", set()),
        ("When is it due?", set()),
        ("what did anna say", set()),
        ("Wo wohnt Łukasz?", {"wo", "łukasz"}),
        ("", set()),
        ("🦊 ???", set()),
    ]
    for text, names in cases:
        assert read_question(text, NOW).names == names, text


def test_the_gist_leaves_out_names_and_question_words() -> None:
    cases = [
        ("When did Anna sell her bike?", "sell her bike"),
        ("What's Ben\u2019s favourite colour?", "favourite colour"),
        ("Where does the team meet?", "the team meet"),
        ("Who is Anna?", "is"),
        ("Anna", "Anna"),  # nothing would be left
        ("Who? When?", "Who? When?"),
        ("🦊", "🦊"),
    ]
    for text, gist in cases:
        assert read_question(text, NOW).gist == gist, text


def test_reads_the_days_a_question_refers_to() -> None:
    cases = [
        ("What happened on 2026-03-05?", (2026, 3, 5)),
        ("on March 5", (None, 3, 5)),
        ("on 5th of March 2025", (2025, 3, 5)),
        ("on the 31st December", (None, 12, 31)),
        ("on Sept. 3rd, 2024", (2024, 9, 3)),
        ("What did we decide in May?", (None, 5, None)),
        ("this May", (None, 5, None)),
        ("late-October plans", (None, 10, None)),
        ("January, 2025", (2025, 1, None)),
        ("budget of 2025", (2025, None, None)),
        ("what was said yesterday", (date(2026, 11, 17), date(2026, 11, 17))),
        ("What did I say this morning?", (date(2026, 11, 18), date(2026, 11, 18))),
        ("this week", (date(2026, 11, 12), date(2026, 11, 18))),
        ("last week's talk", (date(2026, 11, 5), date(2026, 11, 17))),
        ("last month", (date(2026, 9, 18), date(2026, 11, 17))),
        ("last year", (2025, None, None)),
        ("three days ago", (date(2026, 11, 15), date(2026, 11, 15))),
        ("2 weeks ago", (date(2026, 11, 1), date(2026, 11, 7))),
        ("a year ago", (date(2025, 5, 20), date(2026, 5, 19))),
    ]
    for text, meant in cases:
        assert days_meant(text) == meant, text


def test_verbs_and_bare_numbers_are_no_dates() -> None:
    texts = [
        "May I march with you?",
        "this may help",
        "She may decide",
        "How far did they march?",
        "an august person",
        "a day",
        "room 12345",
        "12:30",
        "version 3.2019.1x",
        "",
    ]
    for text in texts:
        assert days_meant(text) in (None, (2019, None, None) if "2019" in text else None), text


def test_impossible_days_match_nothing() -> None:
    for text in ("2026-13-45", "31 June", "on February 30"):
        dates = read_question(text, NOW).dates
        assert dates is not None
        assert {dates.nearness(NOW - timedelta(days=ago)) for ago in range(800)} == {0.0}


def test_nearness_is_one_on_the_day_half_in_the_week_after_and_nothing_else() -> None:
    dates = read_question("What happened on 28 February 2024?", NOW).dates
    assert dates is not None
    day = datetime(2024, 2, 28, 12, tzinfo=UTC)
    assert [dates.nearness(day + timedelta(days=after)) for after in (-1, 0, 1, 7, 8)] == [0, 1, 0.5, 0.5, 0]
    assert dates.nearness(day.replace(year=2025)) == 0


def test_a_month_without_a_year_is_that_month_of_any_year_and_has_no_week_after() -> None:
    dates = read_question("in May", NOW).dates
    assert dates is not None
    days = (
        datetime(2024, 5, 31, tzinfo=UTC),
        datetime(2025, 5, 1, tzinfo=UTC),
        datetime(2025, 6, 1, tzinfo=UTC),
    )
    assert [dates.nearness(day) for day in days] == [1, 1, 0]


def test_days_are_past_only_when_the_last_possible_one_is_over() -> None:
    past = ("yesterday", "last week", "in 2025", "in May 2026", "on 2026-09-05")
    not_past = ("today", "this week", "in 2026", "in November 2026", "in May", "on 2026-11-20", "in 2027")
    questions = [read_question(text, NOW) for text in past + not_past]
    is_past = {question.text: question.dates and question.dates.is_past(NOW.date()) for question in questions}
    assert is_past == dict.fromkeys(past, True) | dict.fromkeys(not_past, False)


def test_recognizes_questions_for_a_time_or_a_number() -> None:
    cases = [
        ("When is it due?", True, False),
        ("  when's lunch", True, False),
        ("Since when are you here?", True, False),
        ("On what date did it happen?", True, False),
        ("Which year was it?", True, False),
        ("How long did it take?", True, True),
        ("How many cats?", False, True),
        ("and how OFTEN?", False, True),
        ("Tell me when it rains", False, False),
        ("Whenever", False, False),
        ("How are you?", False, False),
        ("show many things", False, False),
    ]
    for text, when, number in cases:
        question = read_question(text, NOW)
        assert (question.asks_when, question.asks_number) == (when, number), text


def test_recognizes_questions_about_oneself() -> None:
    cases = [
        ("What is my name?", True),
        ("Where do I live?", True),
        ("I'm allergic to what?", True),
        ("what have i\u2019ve got", True),
        ("Remind me", True),
        ("Where does Anna live?", False),
        ("mind the gap in Miami", False),
    ]
    for text, expected in cases:
        assert read_question(text, NOW).about_self is expected, text


def test_subject_of_a_memory() -> None:
    cases = [
        ("Anna sold her bike", "anna"),
        ("Anna's bike is red", "anna"),
        ("Anna: I sold it", "anna"),
        ("I sold it", "olive"),
        ("My bike is red", "olive"),
        ("I\u2019ve sold it", "olive"),
        ("User is vegetarian.", "olive"),
        ("The user's dog is Rufus", "olive"),
        ("The office is in Lisbon", ""),
        ("user interfaces are hard", ""),
        ("we meet on Monday", ""),
        ("May is warm", ""),
        ("", ""),
        ("...", ""),
    ]
    for content, expected in cases:
        assert subject(content, "Olive") == expected, content


def test_times_and_numbers_in_a_memory() -> None:
    cases = [
        ("We meet on Monday", True, False),
        ("It was two years ago", True, True),
        ("In May it rains", True, False),
        ("It may rain", False, False),
        ("at 9:30", True, True),
        ("since 1999", True, True),
        ("a dozen eggs", False, True),
        ("3 cats", False, True),
        ("somebody phoned", False, False),
        ("ABC123", False, False),
    ]
    for content, time_named, number_named in cases:
        assert (mentions_time(content), mentions_number(content)) == (time_named, number_named), content


def test_a_memory_that_ends_in_a_question_asks() -> None:
    assert asks("Lovely! How was it?")
    assert not asks("How was it? It was lovely.")


HOSTILE = {
    "spaces": "in" + " " * 50_000 + "x",
    "digits": "1" * 50_000,
    "numbers": "1 " * 25_000,
    "months": "may " * 12_000,
    "leading words": "in in-" * 8_000,
    "ago": "a day " * 8_000,
    "apostrophes": "a" + "'" * 50_000,
    "capitals": "Aa" * 25_000,
    "names": "Anna " * 10_000,
    "dates": "2026-11-1" * 5_500,
    "foxes": "🦊" * 50_000,
    "how": "how " * 12_000,
}


def test_hostile_text_is_read_in_linear_time() -> None:
    """A pattern that backtracks from every position would keep this test busy for minutes."""
    for kind, text in HOSTILE.items():
        assert read_question(text, NOW).gist, kind
        for read in (mentions_time, mentions_number, asks):
            assert read(text) in (True, False), kind
        assert len(subject(text, "olive")) <= 200, kind
