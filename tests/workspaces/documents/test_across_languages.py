"""A question in one language about a document in another, from the upload to the answer's sources."""

import pytest
from django.utils import timezone

from chat.models import MessageRole
from chat.turns.sources import sources_for
from tests.api import Api
from tests.conftest import Cast
from tests.factories import HERE, make_chat, make_message
from tests.rollback import rolled_back
from workspaces import tasks
from workspaces.documents import reading_jobs
from workspaces.models import Document
from workspaces.models.documents import DOCUMENT

pytestmark = pytest.mark.django_db

ENGLISH = """# Travel

Employees book trains in second class. Flights need the approval of the head of department.

# Expenses

Receipts must be handed in within thirty days of the trip. Alcohol is never reimbursed.

# Working from home

You may work from home up to three days a week. Tuesday is the day when everybody is in the office.

# Holidays

Every full-time employee has 30 days of paid leave a year. Unused days expire at the end of March.

# Illness

Call your manager before nine in the morning. A doctor's certificate is needed from the third day on.
"""
GERMAN = """# Reisen

Mitarbeitende buchen Züge in der zweiten Klasse. Flüge genehmigt die Abteilungsleitung.

# Spesen

Belege sind innerhalb von dreißig Tagen nach der Reise einzureichen. Alkohol wird nicht erstattet.

# Arbeit von zu Hause

Bis zu drei Tage in der Woche darf von zu Hause gearbeitet werden. Dienstags sind alle im Büro.

# Urlaub

Alle Vollzeitkräfte haben 30 bezahlte Urlaubstage im Jahr. Resturlaub verfällt Ende März.

# Krankheit

Melde dich vor neun Uhr bei deiner Führungskraft. Ab dem dritten Tag ist ein ärztliches Attest nötig.
"""
ASKED = [
    (ENGLISH, "Wann müssen Belege eingereicht werden?", "Expenses"),
    (ENGLISH, "Wer genehmigt Flüge?", "Travel"),
    (ENGLISH, "Ab wann brauche ich eine Krankschreibung?", "Illness"),
    (ENGLISH, "Wann verfallen nicht genommene Urlaubstage?", "Holidays"),
    (ENGLISH, "在家工作可以几天？", "Working from home"),  # noqa: RUF001
    (GERMAN, "When are receipts due?", "Spesen"),
    (GERMAN, "Who approves flights?", "Reisen"),
    (GERMAN, "When do I need a sick note?", "Krankheit"),
    (GERMAN, "Do unused holidays expire?", "Urlaub"),
]
OF_NOTHING = [
    "Wie heißt die Hauptstadt von Frankreich?",
    "How tall is Mount Everest?",
    "Guten Morgen!",
    "Danke dir!",
]


def upload(cast: Cast, text: str) -> None:
    place = f"workspaces/{cast.workspace.public_id}/documents"
    made = Api(cast.editor).post(place, {"title": "Handbook", "text": text})
    assert made.status_code == 201
    document = Document.objects.get(public_id=made.json()["id"])
    reading_jobs.read(document.pk, now=timezone.now())
    tasks.embed_passages(kind=DOCUMENT, refs=list(document.passages.values_list("pk", flat=True)))


def searched(cast: Cast, question: str) -> list[str]:
    given = {"query": question, "types": ["document"]}
    results = Api(cast.viewer).post(f"workspaces/{cast.workspace.public_id}/search", given).json()["results"]
    return [each["place"]["heading"] for each in results]


def used(cast: Cast, question: str) -> list[str]:
    asked = make_message(make_chat(cast.owner, cast.workspace), question)
    answer = make_message(asked.chat, "…", role=MessageRole.ASSISTANT, reply_to=asked)
    return [each.passage.heading for each in sources_for(answer, asked, cast.owner, room=2000, policy=HERE)]


def test_question_in_another_language_finds_its_section(cast: Cast) -> None:
    for text in rolled_back([ENGLISH, GERMAN]):
        upload(cast, text)
        for document, question, heading in ASKED:
            if document == text:
                assert searched(cast, question)[:1] == [heading], question
                assert used(cast, question)[:1] == [heading], question
        for message in OF_NOTHING:
            assert used(cast, message) == [], message
