"""Budgets: permissions, counting, the warning at four fifths and the stop at the whole."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from pytest_django.fixtures import DjangoAssertNumQueries

from memoryhub.errors import Forbidden, Invalid
from memoryhub.llm.metering import NOTHING, Price, Usage
from tests.conftest import Cast
from tests.factories import make_connection, make_user, make_workspace
from tests.workspaces.spending.test_ledger import meter_with
from workspaces.access import get_workspace
from workspaces.model_choice import Chosen, model_of
from workspaces.models import AuditEvent, Budget, Purpose, User, Workspace
from workspaces.spending import budgets
from workspaces.spending.budgets import BudgetReached, require_budget, standings
from workspaces.spending.usage_records import Account, Rate, rate_of, record

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
COSTLY = Rate("large-2", Price(Decimal(1), Decimal(1)))
EMBEDDED = Rate("small", NOTHING, is_embedded=True)


def take(workspace: Workspace, user: User, tokens: int, *, rate: Rate = COSTLY, now: datetime = NOW) -> None:
    record(Account(workspace.pk, user.pk, Purpose.ANSWER, rate), meter_with(Usage(tokens, calls=1)), now=now)


def allow(cast: Cast, tokens: int | None, money: str | None = None) -> None:
    owned = get_workspace(cast.owner, cast.workspace.public_id)
    amount = None if money is None else Decimal(money)
    budgets.set_workspace_budget(owned, tokens=tokens, money=amount, by=cast.owner, now=NOW)


def asked(cast: Cast, user: User | None = None, rate: Rate = COSTLY, now: datetime = NOW) -> None:
    require_budget(cast.workspace.pk, (user or cast.editor).pk, lambda: rate, now=now)


def test_it_is_near_at_four_fifths_and_stops_at_the_whole(
    cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        asked(cast)
    assert standings(cast.workspace.pk, cast.editor.pk, now=NOW) == []
    allow(cast, 1000)
    for tokens, share, near, spent in (
        (799, "0.799", False, False),
        (1, "0.8", True, False),
        (200, "1", True, True),
    ):
        take(cast.workspace, cast.editor, tokens)
        [standing] = standings(cast.workspace.pk, cast.editor.pk, now=NOW)
        assert (standing.share, standing.is_near, standing.is_spent) == (Decimal(share), near, spent)
        if not spent:
            with django_assert_num_queries(1):
                asked(cast)
    with pytest.raises(BudgetReached) as refused:
        asked(cast, cast.owner)
    for said in ("1,000 of 1,000 tokens", "December 1, 2026", "An owner can raise"):
        assert said in refused.value.message.replace("Dec. 1", "December 1")
    asked(cast, rate=EMBEDDED)  # it costs nothing, and goes on
    asked(cast, now=NOW + timedelta(minutes=2))  # another month
    allow(cast, 2000)
    asked(cast)
    allow(cast, None)
    assert not Budget.objects.exists()


def test_money_and_tokens_count_whichever_is_nearer_and_the_embedded_model_not_at_all(cast: Cast) -> None:
    allow(cast, 10_000_000, "2.00")
    take(cast.workspace, cast.editor, 50_000_000, rate=EMBEDDED)
    take(cast.workspace, cast.editor, 50_000_000, now=NOW - timedelta(days=31))
    take(cast.workspace, cast.owner, 1_700_000)
    [standing] = standings(cast.workspace.pk, cast.editor.pk, now=NOW)
    assert (standing.percent, standing.is_near) == (85, True) and "$1.70 of $2.00" in standing.sentence
    take(cast.workspace, cast.editor, 300_000)
    with pytest.raises(BudgetReached, match=r"\$2\.00 of \$2\.00"):
        asked(cast)


def test_a_persons_budget_holds_in_every_workspace_and_deleting_one_gives_nothing_back(cast: Cast) -> None:
    admin, other = make_user(is_staff=True, is_superuser=True), make_workspace(owner=cast.editor)
    budgets.set_person_budget(cast.editor, tokens=1000, money=None, by=admin, now=NOW)
    take(other, cast.editor, 600)
    take(cast.workspace, cast.editor, 400)
    other.delete()
    with pytest.raises(BudgetReached, match="An administrator can raise it"):
        asked(cast)
    asked(cast, cast.owner)


def test_own_connections_count_for_their_person_and_not_for_the_workspace(cast: Cast) -> None:
    """Its owner controls its server's usage figures and its price, so one member could exhaust the
    workspace's budget.
    """
    mine = make_connection(cast.editor, price_in=1_000_000, price_out=1_000_000)
    allow(cast, 1000, "1000.00")
    Budget.objects.create(user=cast.editor, tokens=1000)
    take(cast.workspace, cast.owner, 400)
    take(cast.workspace, cast.editor, 10**9, rate=rate_of(Chosen(model_of(mine), mine)))
    taken = {
        each.of_workspace: each.tokens_taken for each in standings(cast.workspace.pk, cast.editor.pk, now=NOW)
    }
    assert taken == {True: 400, False: 10**9}
    asked(cast, cast.owner)
    with pytest.raises(BudgetReached, match="Your budget"):
        asked(cast)
    take(cast.workspace, cast.editor, 600)
    with pytest.raises(BudgetReached, match="1,000 of 1,000"):
        asked(cast, cast.owner)


def test_zero_stops_everything_at_once(cast: Cast) -> None:
    allow(cast, None, "0")
    with pytest.raises(BudgetReached):
        asked(cast)


def test_values_without_sense_are_refused(cast: Cast) -> None:
    for tokens, money in (
        (-1, None),
        (10**15 + 1, None),
        (None, "-0.01"),
        (None, "NaN"),
        (None, "Infinity"),
        (None, "1e12"),
    ):
        with pytest.raises(Invalid) as refused:
            allow(cast, tokens, money)
        assert list(refused.value.fields) == ["tokens" if tokens is not None else "money"]
        assert not Budget.objects.exists()


def test_owners_set_the_workspaces_and_administrators_a_persons(cast: Cast) -> None:
    allow(cast, 5)
    assert AuditEvent.objects.get(verb="budget_set").details == {"tokens": 5, "money": None}
    for user in (cast.editor, cast.viewer):
        place = get_workspace(user, cast.workspace.public_id)
        with pytest.raises(Forbidden):
            budgets.set_workspace_budget(place, tokens=9, money=None, by=user, now=NOW)
    for user in (cast.owner, cast.editor, make_user(is_staff=True)):
        with pytest.raises(Forbidden):
            budgets.set_person_budget(cast.editor, tokens=9, money=None, by=user, now=NOW)
    assert Budget.objects.get().tokens == 5


def test_months_end_where_they_do() -> None:
    assert budgets.first_of_next(date(2026, 12, 1)) == date(2027, 1, 1)
    assert budgets.first_of_next(date(2026, 1, 1)) == date(2026, 2, 1)
    assert budgets.first_of_month(NOW) == date(2026, 11, 1)
