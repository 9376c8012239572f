"""Contradictions as opposed to merely related small talk. No pair here was used to tune the rule."""

from itertools import combinations

from memories.tidy import about_the_same

SMALL_TALK = """
See ya!|Later!|See you later!|See you tomorrow!|Bye|Bye for now|Thanks!|Thank you so much|No worries|You're welcome
Good morning|Good night|Morning!|Evening all|How are you?|What's up?|ok|okay cool|Got it|Sounds good|Great, thanks
I'm back|brb|lol|haha nice|Guten Morgen|Gute Nacht|Bis später!|Bis morgen!|Danke schön|Vielen Dank|Tschüss
¡Hasta luego!|¡Hasta mañana!|Buenos días|Buenas noches|Gracias|Merci|Merci beaucoup|À demain !|À plus !|Bonne nuit
好的|谢谢|再见|明天见|早上好|晚安|Спасибо|До завтра|Доброе утро|おはよう|おやすみ|また明日|ありがとう
"""
SAME_THING = [
    ("The launch is on March 15", "The launch is on March 16"),
    ("I am vegetarian", "I am not vegetarian any more"),
    ("Maria leads the Apollo team", "Jonas leads the Apollo team"),
    ("My flight to Lisbon leaves at 9:40", "My flight to Lisbon leaves at 19:40"),
    ("Der Vertrag läuft bis Ende Mai", "Der Vertrag läuft bis Ende Juni"),
    ("Vivo en Sevilla con mi hermano", "Vivo en Bilbao con mi hermano"),
    ("会议改到星期三下午", "会议改到星期五下午"),
    ("Новый принтер стоит на втором этаже", "Новый принтер стоит на третьем этаже"),
]


def test_small_talk_never_contradicts() -> None:
    said = [each.strip() for line in SMALL_TALK.strip().splitlines() for each in line.split("|")]
    assert [pair for pair in combinations(said, 2) if about_the_same(*pair)] == []


def test_two_values_of_one_thing_contradict() -> None:
    for older, newer in SAME_THING:
        assert about_the_same(older, newer), (older, newer)
        assert about_the_same(newer, older), (older, newer)
