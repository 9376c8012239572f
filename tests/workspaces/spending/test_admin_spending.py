"""Administrators: a person's budget, and the usage of models everywhere."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.admin_pages import staff
from tests.conftest import Cast
from tests.factories import make_user, make_workspace
from tests.workspaces.spending.test_budgets import COSTLY, take
from workspaces.models import AuditEvent, Budget, ModelUse, User
from workspaces.spending.budgets import BudgetReached, require_budget
from workspaces.spending.usage_records import Rate

pytestmark = pytest.mark.django_db
HOME, LIST = "/admin/", "/admin/workspaces/modeluse/"
OWN = Rate("", None)


def person(user: User) -> str:
    return f"/admin/workspaces/user/{user.pk}/change/"


def save(client: Client, user: User, **budget: str) -> Any:
    kept = {"username": user.username, "email": user.email, "memory_default": ""}
    return client.post(person(user), kept | budget)


def text(client: Client, page: str) -> str:
    return " ".join(client.get(page).content.decode().split())


def test_an_administrator_sets_raises_and_lifts_a_persons_budget(cast: Cast) -> None:
    now, boss = timezone.now(), staff(is_superuser=True)
    take(cast.workspace, cast.editor, 1000, now=now)
    assert save(boss, cast.editor, tokens="1000", money="").status_code == 302
    with pytest.raises(BudgetReached, match="An administrator can raise it"):
        require_budget(cast.workspace.pk, cast.editor.pk, lambda: COSTLY, now=now)
    shown = text(boss, person(cast.editor))
    assert 'value="1000"' in shown and f"user={cast.editor.pk}" in shown and "1,000 tokens, $0.0010" in shown
    save(boss, cast.editor, tokens="1000", money="2.50")
    assert Budget.objects.get().money == Decimal("2.50")
    save(boss, cast.editor, tokens="1000", money="2.50")  # without a change nothing is logged
    save(boss, cast.editor, tokens="", money="")
    assert not Budget.objects.exists()
    noted = AuditEvent.objects.filter(verb="budget_set", target=cast.editor.public_id).order_by("pk")
    assert [event.details["tokens"] for event in noted] == [1000, 1000, None]


def test_a_persons_budget_without_sense_is_refused_at_its_field(cast: Cast) -> None:
    for wrong in (
        {"tokens": "-1"},
        {"tokens": "9" * 30},
        {"money": "1e30"},
        {"money": "NaN"},
        {"tokens": "all"},
    ):
        answer = save(staff(is_superuser=True), cast.editor, **wrong)
        assert answer.status_code == 200 and list(answer.context["adminform"].form.errors) == list(wrong)
        assert not Budget.objects.exists() and not AuditEvent.objects.filter(verb="budget_set").exists()


def test_staff_who_are_no_superusers_see_it_and_do_not_set_it(cast: Cast) -> None:
    Budget.objects.create(user=cast.editor, tokens=5000, money=None)
    clerk = staff("view_user", "change_user")
    shown = text(clerk, person(cast.editor))
    assert "5,000" in shown and 'name="tokens"' not in shown
    save(clerk, cast.editor, tokens="9", first_name="Ed")
    assert Budget.objects.get().tokens == 5000


def numbers(response: Any) -> dict[str, tuple[str, str]]:
    """Return label to value and address of the figures on the usage of models."""
    return {
        f"{title}: {figure.label}": (f"{figure.value} · {figure.note}", figure.url)
        for title, group in response.context["groups"].items()
        if "this month" in title
        for figure in group
    }


def test_each_number_of_the_first_screen_leads_to_the_sums_behind_it(cast: Cast) -> None:
    now, boss = timezone.now(), staff(is_superuser=True)
    elsewhere = make_workspace(owner=cast.owner, name="Annex")
    take(cast.workspace, cast.owner, 2_000_000, now=now)
    take(cast.workspace, cast.editor, 500, now=now, rate=OWN)
    take(elsewhere, cast.owner, 1_000_000, now=now)
    take(elsewhere, cast.owner, 9_000_000, now=now - timedelta(days=32))
    shown = numbers(boss.get(HOME))
    of = {name: f"{name} by usage this month: " for name in ("Workspaces", "People", "Models")}
    ranked = {label: value for label, (value, _) in shown.items() if "by usage" in label}
    assert ranked == {
        of["Workspaces"] + cast.workspace.name: "2,000,500 · $2.00",
        of["Workspaces"] + "Annex": "1,000,000 · $1.00",
        of["People"] + cast.owner.username: "3,000,000 · $3.00",
        of["People"] + cast.editor.username: "500 · ",
        of["Models"] + "large-2": "3,000,000 · $3.00",
        of["Models"] + "Own connections": "500 · ",
    }
    totals = [shown[f"Models this month: {name}"][0] for name in ("tokens", "cost", "calls of models")]
    assert [total.split(" ")[0] for total in totals] == ["3,000,500", "$3.00", "3"]
    for label, (value, url) in shown.items():
        rows = boss.get(url).context["cl"].queryset
        tokens = sum(row.tokens_in + row.tokens_out for row in rows)
        if label in ranked or label.endswith("tokens"):
            assert f"{tokens:,}" == value.split(" ")[0], f"{label}: {url}"
    assert "Annex" in text(staff("view_modeluse"), HOME)
    blind = staff("view_memory").get(HOME)
    assert numbers(blind) == {} and "Annex" not in blind.content.decode()
    assert staff("view_memory").get(LIST).status_code == 403


def test_five_of_each_are_shown_however_many_there_are(cast: Cast) -> None:
    now, boss = timezone.now(), staff(is_superuser=True)
    cast.workspace.name = hostile = "<b>&'Annex"
    cast.workspace.save()

    def grow(start: int, end: int) -> None:
        for number in range(start, end):
            user = make_user()
            place = cast.workspace if number == 0 else make_workspace(owner=user)
            take(place, user, 100 - number, now=now, rate=Rate(f"model-{number}", COSTLY.price))

    def asked() -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            answer = boss.get(HOME)
        assert hostile not in answer.content.decode()
        return [query["sql"] for query in captured if "modeluse" in query["sql"]]

    grow(0, 2)
    few = asked()
    grow(2, 9)
    assert len(few) == len(asked()) == 4
    shown = numbers(boss.get(HOME))
    assert [label for label in shown if label.startswith("Models by")] == [
        f"Models by usage this month: model-{n}" for n in range(5)
    ]
    ModelUse.objects.update(workspace=None)  # of deleted ones: counted in the total, without a link
    kept = numbers(boss.get(HOME))
    assert kept["Models this month: tokens"] == shown["Models this month: tokens"]
    assert not any(label.startswith("Workspaces") for label in kept)
