"""The validity period that a statement names, in several languages."""

# ruff: noqa: RUF001  statements in other scripts
from datetime import UTC, date, datetime

from memories.judging.stated_period import read_validity, speaks_of_before

SAID = datetime(2026, 4, 10, 12, 0, tzinfo=UTC)


def bounds(text: str) -> tuple[date | None, date | None]:
    begin, end = read_validity(text, SAID)
    return begin and begin.date(), end and end.date()


def test_bounds_are_read_in_the_language_of_their_word() -> None:
    cases = [
        ("Invoices have gone through Sage since March 2024.", date(2024, 3, 1), None),
        ("The studio was in Leith until 3 May 2025.", None, date(2025, 5, 3)),
        ("Nora leads the team from September 2023 to January 2025.", date(2023, 9, 1), date(2025, 1, 31)),
        ("User has been vegan since 2019, except on holiday.", date(2019, 1, 1), None),
        ("Seit Januar 2025 drucken wir bei Lenz.", date(2025, 1, 1), None),
        ("Das Lager war bis Ende Juni 2024 in Fürth.", None, date(2024, 6, 30)),
        ("Ab dem 1. Mai gilt der neue Tarif.", date(2026, 5, 1), None),
        ("Die Praxis war von März 2021 bis April 2023 in Köln.", date(2021, 3, 1), date(2023, 4, 30)),
        ("Depuis février 2025, les devis se font sous Batigest.", date(2025, 2, 1), None),
        ("Le fournisseur était Lacroix jusqu’en mai 2025.", None, date(2025, 5, 31)),
        ("À partir du 3 mai, nous livrons le samedi.", date(2026, 5, 3), None),
        ("Desde marzo de 2024 usamos Holded.", date(2024, 3, 1), None),
        ("La tienda estuvo en la calle Mayor hasta mayo de 2025.", None, date(2025, 5, 31)),
        ("自2024年3月起用飞书开会。", date(2024, 3, 1), None),
        ("仓库到2025年6月为止在余杭。", None, date(2025, 6, 30)),
        ("2025年4月から新しい事務所です。", date(2025, 4, 1), None),
        ("С марта 2024 работаем с Boxberry.", date(2024, 3, 1), None),
    ]
    for text, begin, end in cases:
        assert bounds(text) == (begin, end), text


def test_month_without_a_year_is_the_nearest_that_fits() -> None:
    cases = [
        ("Ida has been off sick since May.", date(2025, 5, 1), None),
        ("Ida is off sick until February.", None, date(2027, 2, 28)),
        ("From May the rent is 900 euros.", date(2026, 5, 1), None),
        ("Ida is away from December to January 2027.", date(2026, 12, 1), date(2027, 1, 31)),
    ]
    for text, begin, end in cases:
        assert bounds(text) == (begin, end), text


def test_other_times_are_no_bounds() -> None:
    texts = [
        "Support answers from Monday to Friday until 18:00.",
        "The high season lasts from May to September.",
        "Discounts start from 2000 euros, hasta 2500 euros.",
        "Bis 2000 Euro darf jeder selbst entscheiden.",
        "Wait until the tests are green, then deploy.",
        "El informe de mayo de 2024 está en Drive.",
        "周一到周五九点到六点上班。",
        "Opened in 2018, May sales were good.",
    ]
    for text in texts:
        assert bounds(text) == (None, None), text


def test_the_last_moment_of_the_end_still_counts() -> None:
    end = read_validity("The offer stands until March 2027.", SAID).valid_to
    assert end == datetime(2027, 3, 31, 23, 59, 59, 999999, tzinfo=UTC)


def test_questions_about_the_past_are_known_by_their_words() -> None:
    for text in ("What did I use to write with?", "Who used to work here?", "What was the earlier plan?"):
        assert speaks_of_before(text), text
    for text in ("What do I use to write?", "Who works here?"):
        assert not speaks_of_before(text), text
