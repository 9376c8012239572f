"""Usage of models on pages and over REST: permissions, and forged queries."""

import json
import re
from typing import Any

import pytest
from django.utils import timezone

from memoryhub.llm.metering import Parts, Usage
from tests.conftest import Cast
from tests.factories import make_chat, make_message, make_workspace
from tests.rollback import rolled_back
from tests.signing_in import signed_in
from tests.workspaces.spending.test_budgets import COSTLY
from tests.workspaces.spending.test_ledger import meter_with
from workspaces.access import get_workspace
from workspaces.actions.workspaces import remove_member
from workspaces.models import Budget, Purpose, User, Workspace
from workspaces.spending.budgets import set_workspace_budget
from workspaces.spending.monthly_usage import month_of, of_person
from workspaces.spending.usage_records import Account, Bill, Rate, record

pytestmark = pytest.mark.django_db


def take(cast: Cast, user: User, tokens: int, rate: Rate = COSTLY) -> None:
    meter = meter_with(Usage(tokens, 0, 5, calls=1), parts=Parts(1, 2, 3, 10))
    record(Account(cast.workspace.pk, user.pk, Purpose.ANSWER, rate), meter, now=timezone.now())


def read(user: User, url: str) -> Any:
    return signed_in(user).get(url).json()


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_owners_see_everybody_others_themselves_and_strangers_nothing(cast: Cast) -> None:
    take(cast, cast.owner, 1000)
    take(cast, cast.editor, 70, Rate("", None))
    url, page = (
        f"/chat/api/workspaces/{cast.workspace.public_id}/usage",
        f"/workspaces/{cast.workspace.public_id}/usage/",
    )
    all_of_it = read(cast.owner, url)
    assert all_of_it["total"]["tokens_in"] == 1070 and all_of_it["total"]["unpriced"] == 1
    assert [line["name"] for line in all_of_it["people"]] == [cast.owner.username, cast.editor.username]
    assert (all_of_it["total"]["memory"], all_of_it["total"]["documents"], all_of_it["total"]["tools"]) == (
        107,
        214,
        321,
    )
    assert {line["name"] for line in all_of_it["models"]} == {"large-2", "Own connections"}
    own = read(cast.editor, url)
    assert own["total"]["tokens_in"] == 70 and own["total"]["cost"] is None
    assert [line["name"] for line in own["people"]] == [cast.editor.username]
    assert read(cast.viewer, url)["people"] == []
    assert (
        signed_in(cast.stranger).get(url).status_code == signed_in(cast.stranger).get(page).status_code == 404
    )
    assert cast.editor.username in text(signed_in(cast.owner).get(page))
    shown = text(signed_in(cast.editor).get(page))
    assert "70 tokens in, 5 out" in shown and "1,070" not in shown and 'name="tokens"' not in shown
    assert read(cast.owner, "/chat/api/usage")["total"]["tokens_in"] == 1000
    assert "Shared" in text(signed_in(cast.editor).get("/profile/usage/"))
    cast.workspace.memberships.filter(user=cast.editor).delete()
    left = text(signed_in(cast.editor).get("/profile/usage/"))
    assert "Workspaces you have left" in left and "Shared" not in left


def test_a_forged_month_is_refused_by_name_and_a_page_shows_this_one(cast: Cast) -> None:
    for month in ("2026-13", "2026-1", "1999-01", "2026-11-01", "'; --", "²026-11", "x" * 500):
        answer = signed_in(cast.owner).get("/chat/api/usage", {"month": month})
        assert answer.status_code == 422 and list(answer.json()["error"]["fields"]) == ["month"]
        page = signed_in(cast.owner).get(f"/workspaces/{cast.workspace.public_id}/usage/", {"month": month})
        assert page.status_code == 200 and f"{timezone.now():%Y}" in text(page)


def test_a_workspace_that_somebody_left_is_not_named_to_them(cast: Cast) -> None:
    take(cast, cast.editor, 100)
    gone = make_workspace(owner=cast.editor, name="Gone")
    record(
        Account(gone.pk, cast.editor.pk, Purpose.ANSWER, COSTLY),
        meter_with(Usage(7, calls=1)),
        now=timezone.now(),
    )
    assert "Shared" in text(signed_in(cast.editor).get("/profile/usage/"))
    remove_member(get_workspace(cast.owner, cast.workspace.public_id), user=cast.editor, by=cast.owner)
    Workspace.objects.filter(pk=cast.workspace.pk).update(name="Layoffs")
    gone.delete()
    page = text(signed_in(cast.editor).get("/profile/usage/"))
    assert "Layoffs" not in page and "Shared" not in page and page.count("Workspaces you have left") == 1
    month = of_person(cast.editor, month_of("", now=timezone.now()), now=timezone.now())
    assert [line.bill.tokens_in for line in month.workspaces] == [107]


def test_months_stand_apart(cast: Cast) -> None:
    take(cast, cast.owner, 10)
    assert read(cast.owner, "/chat/api/usage?month=2020-01")["total"]["calls"] == 0
    assert 'href="?month=2019-12"' in text(signed_in(cast.owner).get("/profile/usage/?month=2020-01"))


def test_a_budget_without_sense_is_refused_by_name(cast: Cast) -> None:
    for body in (
        {"tokens": -1},
        {"tokens": 10**16},
        {"money": "-1"},
        {"money": "NaN"},
        {"money": "1e30"},
        {"tokens": "all"},
        {"money": "0.001"},
        {"user": "usr_x"},
        {"tokens": True},
    ):
        url = f"/chat/api/workspaces/{cast.workspace.public_id}/budget"
        answer = signed_in(cast.owner).put(url, json.dumps(body), content_type="application/json")
        assert answer.status_code == 422 and list(answer.json()["error"]["fields"]) == list(body)
        assert not Budget.objects.exists()


def test_owners_set_a_budget_and_everybody_who_writes_is_warned(cast: Cast) -> None:
    page = f"/workspaces/{cast.workspace.public_id}/usage/"
    assert signed_in(cast.editor).post(page, {"tokens": "5"}).status_code == 403
    assert signed_in(cast.owner).post(page, {"tokens": "-5"}).status_code == 422
    saved = signed_in(cast.owner).post(page, {"tokens": "1000", "money": ""}, follow=True)
    assert "The budget is saved." in text(saved) and 'value="1000"' in text(saved)
    chat = make_chat(cast.editor, cast.workspace)
    take(cast, cast.owner, 795)
    warned = text(signed_in(cast.editor).get(f"/chats/{chat.public_id}/"))
    assert "This workspace has used 800 of 1,000 tokens of its budget for this month" in warned
    take(cast, cast.owner, 500, Rate("small", COSTLY.price, is_embedded=True))
    take(cast, cast.owner, 195)
    url = f"/chat/api/workspaces/{cast.workspace.public_id}/usage"
    assert read(cast.owner, url)["budgets"][0]["percent"] == 100


def test_an_answer_says_of_what_its_tokens_were_and_what_is_guessed(cast: Cast) -> None:
    for usage, rate, line in rolled_back(
        [
            (Usage(1000, calls=1, estimated=1), COSTLY, "About 1,000 tokens in, 0 out, $0.0010 (estimated)"),
            (Usage(1000, calls=1, estimated=1), Rate("", None), "About 1,000 tokens in, 0 out (estimated)"),
        ]
    ):
        chat = make_chat(cast.editor, cast.workspace)
        meters = [meter_with(each, parts=Parts(1, 2, 0, 10)) for each in (usage, Usage(1000, 40, 7, calls=1))]
        bills = [Bill.of(meter.total(), rate) for meter in meters]
        answers = [make_message(chat, "Hello.", role="assistant", usage=bill.as_json()) for bill in bills]
        make_message(chat, "Bye.", role="assistant")  # from before the ledger
        page = text(signed_in(cast.viewer).get(f"/chats/{chat.public_id}/"))
        assert line in page, (usage, rate, line)
        assert page.count("≈ marks an estimate.") == 2, (usage, rate, line)
        guessed, said = (re.findall("<dt>(.+?)</dt><dd>(.+?)</dd>", list) for list in page.split("<dl>")[1:3])
        assert dict(guessed) == {
            "Tokens in": "≈ 1,000",
            "Cached": "0",
            "Memory": "≈ 100",
            "Documents": "≈ 200",
            "Tools": "0",
            "Tokens out": "0",
        }, (usage, rate, line)
        assert dict(said) | {"Tokens in": "1,000", "Cached": "40", "Tokens out": "7"} == dict(said), (
            usage,
            rate,
            line,
        )
        url = f"/chat/api/{chat.public_id}/messages"
        usages = {item["id"]: item["usage"] for item in read(cast.viewer, url)["items"]}
        assert [usages[answer.public_id]["estimated"] for answer in answers] == [1, 0], (usage, rate, line)
        assert usages[answers[1].public_id]["cached"] == 40 and list(usages.values())[-1] is None, (
            usage,
            rate,
            line,
        )
        assert signed_in(cast.stranger).get(url).status_code == 404, (usage, rate, line)


def test_what_is_estimated_or_has_no_price_is_marked_as_such_in_every_row(cast: Cast) -> None:
    """The mark is shown in tables, in a budget's sentence, to administrators and over REST."""
    guessed = meter_with(Usage(1000, 0, 5, calls=1, estimated=1), parts=Parts(1, 2, 3, 10))
    account = Account(cast.workspace.pk, cast.owner.pk, Purpose.ANSWER, COSTLY)
    record(account, guessed, now=timezone.now())
    take(cast, cast.editor, 70)
    page = f"/workspaces/{cast.workspace.public_id}/usage/"
    place = get_workspace(cast.owner, cast.workspace.public_id)
    set_workspace_budget(place, tokens=1200, money=None, by=cast.owner, now=timezone.now())
    rows = text(signed_in(cast.owner).get(page))
    assert f"<bdi>{cast.owner.username}</bdi> </th> <td>≈ 1,000</td> <td>0</td> <td>≈ 5</td>" in rows
    assert f"<bdi>{cast.editor.username}</bdi> </th> <td>70</td> <td>0</td> <td>5</td> <td>≈ 7</td>" in rows
    assert "<td>≈ $0.0010</td>" in rows and "≈ marks an estimate: what" in rows
    assert "has used ≈ 1,080 of 1,200 tokens of its budget" in rows
    url = f"/chat/api/workspaces/{cast.workspace.public_id}/usage"
    assert read(cast.owner, url)["budgets"][0]["is_estimate"] is True
    take(cast, cast.editor, 30, Rate("large-2", None))
    assert "<td>at least $0.000075</td>" in text(signed_in(cast.owner).get(page))
    User.objects.filter(pk=cast.owner.pk).update(is_staff=True, is_superuser=True)
    front = text(signed_in(cast.owner).get("/admin/"))
    assert "≈ 1,115" in front and "1 of 3 calls are estimated." in front


def test_a_month_says_each_workspace_and_chat_over_rest(cast: Cast) -> None:
    other = make_workspace(owner=cast.editor, name=cast.workspace.name)  # with the same name
    take(cast, cast.editor, 70)
    record(
        Account(other.pk, cast.editor.pk, Purpose.ANSWER, COSTLY),
        meter_with(Usage(7, calls=1)),
        now=timezone.now(),
    )
    chats = [make_chat(cast.editor, place, title="Plans") for place in (cast.workspace, other)]
    hidden = make_chat(cast.editor, cast.workspace, title="Mine", is_private=True)
    bill = Bill.of(meter_with(Usage(500, 0, 5, calls=1)).total(), COSTLY)
    for chat in (*chats, hidden):
        make_message(chat, "Hello.", role="assistant", usage=bill.as_json())
    own = read(cast.editor, "/chat/api/usage")
    assert {line["id"]: line["usage"]["tokens_in"] for line in own["workspaces"]} == {
        cast.workspace.public_id: 70,
        other.public_id: 7,
    }
    assert {line["id"] for line in own["chats"]} == {chat.public_id for chat in (*chats, hidden)}
    url = f"/chat/api/workspaces/{cast.workspace.public_id}/usage"
    for person in (cast.owner, cast.viewer):
        seen = read(person, url)
        assert [line["id"] for line in seen["chats"]] == [chats[0].public_id] and seen["workspaces"] == []
        assert seen["chats"][0]["name"] == "Plans" and seen["chats"][0]["usage"]["tokens_in"] == 500
        assert read(person, f"{url}?month=2020-01")["chats"] == []
    remove_member(get_workspace(cast.owner, cast.workspace.public_id), user=cast.editor, by=cast.owner)
    left = read(cast.editor, "/chat/api/usage")
    assert {line["id"] for line in left["workspaces"]} == {other.public_id, None}
    assert {line["id"] for line in left["chats"]} == {chats[1].public_id}


def test_a_chat_says_what_all_its_answers_took_to_who_may_read_it(cast: Cast) -> None:
    chat = make_chat(cast.editor, cast.workspace)
    url = f"/chat/api/chats/{chat.public_id}"
    assert read(cast.viewer, url)["usage"] | {"cost": ""} == {**Bill().as_json(), "cost": ""}
    for tokens, rate in ((1000, COSTLY), (70, Rate("", None))):
        bill = Bill.of(meter_with(Usage(tokens, 0, 5, calls=1), parts=Parts(1, 2, 3, 10)).total(), rate)
        make_message(chat, "Hello.", role="assistant", usage=bill.as_json())
    make_message(chat, "Bye.", role="assistant")  # from before the ledger
    took = read(cast.viewer, url)["usage"]
    assert (took["tokens_in"], took["tokens_out"], took["calls"], took["unpriced"]) == (1070, 10, 2, 1)
    assert (took["memory"], float(took["cost"])) == (107, 0.001005)
    assert signed_in(cast.stranger).get(url).status_code == 404
    menu = f"/chats/{chat.public_id}/model/"
    assert "All answers of this chat" in text(signed_in(cast.viewer).get(menu))
    assert "1,070 tokens in, 10 out, at least $0.0010" in text(signed_in(cast.viewer).get(menu))
    assert signed_in(cast.stranger).get(menu).status_code == 404
    page, own = f"/workspaces/{cast.workspace.public_id}/usage/", "/profile/usage/"
    take(cast, cast.editor, 1)  # a month with usage
    row = f'<a href="/chats/{chat.public_id}/"><bdi>New chat</bdi></a> </th> <td>1,070</td>'
    assert row in text(signed_in(cast.owner).get(page)) and row in text(signed_in(cast.editor).get(own))
    assert row not in text(signed_in(cast.editor).get(f"{page}?month=2020-01"))
    chat.is_private = True
    chat.save()
    assert row not in text(signed_in(cast.owner).get(page)) and row in text(signed_in(cast.editor).get(page))
    assert signed_in(cast.owner).get(url).status_code == 404
