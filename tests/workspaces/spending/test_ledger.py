"""The ledger: sums of a day, added by one statement, kept after their user or workspace is deleted."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from memoryhub.llm.metering import Meter, Parts, Price, Usage
from tests.conftest import Cast
from tests.factories import make_connection
from workspaces.accounts.account_changes import delete_account
from workspaces.model_choice import Chosen, model_of
from workspaces.models import ModelUse, Purpose
from workspaces.spending.usage_records import Account, Bill, Rate, amount, rate_of, record, record_embedding

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 23, 4, 0, tzinfo=UTC)
RATE = Rate("large-2", Price(Decimal(2), Decimal(8)))


def account_of(cast: Cast, purpose: Purpose = Purpose.ANSWER, rate: Rate = RATE) -> Account:
    return Account(cast.workspace.pk, cast.editor.pk, purpose, rate)


def meter_with(*usages: Usage, parts: Parts | None = None) -> Meter:
    meter = Meter()
    for usage in usages:
        meter.add(usage)
    meter.add(Usage(), parts)
    return meter


def test_calls_of_a_day_are_one_row_added_by_one_statement(cast: Cast) -> None:
    usage = Usage(1000, 200, 50, 10, calls=1)
    meter = meter_with(usage, Usage(10, calls=1, estimated=1), parts=Parts(25, 50, 0, 100))
    with CaptureQueriesContext(connection) as asked, transaction.atomic():
        bill = record(account_of(cast), meter, now=NOW)
    assert len([query for query in asked.captured_queries if "INSERT" in query["sql"]]) == 1
    assert bill is not None and (bill.memory, bill.documents) == (252, 505)
    record(account_of(cast), meter_with(usage), now=NOW)
    record(account_of(cast, rate=Rate("", None)), meter_with(usage), now=NOW)
    record(account_of(cast), Meter(), now=NOW)  # without a call
    row = ModelUse.objects.get(model="large-2")
    numbers = (row.calls, row.estimated, row.tokens_in, row.cached, row.tokens_out, row.reasoning)
    assert numbers == (3, 1, 2010, 400, 100, 20)
    assert (row.cost, row.unpriced) == (Decimal("0.00482"), 0)
    own = ModelUse.objects.get(model="")
    assert (own.cost, own.unpriced) == (0, 1), "what nobody set a price of is not free, and says so"


def test_what_a_rollback_undid_is_counted_when_it_is_done_again(cast: Cast) -> None:
    meter = meter_with(Usage(10, calls=1))
    for fails in (True, False):
        try:
            with transaction.atomic():
                record(account_of(cast), meter, now=NOW)
                if fails:
                    raise RuntimeError
        except RuntimeError:
            assert not ModelUse.objects.exists()
    assert ModelUse.objects.get().calls == 1


def test_sums_stay_when_their_person_and_workspace_go_and_name_nobody(cast: Cast) -> None:
    for user in (cast.editor, cast.viewer):
        account = Account(cast.workspace.pk, user.pk, Purpose.ANSWER, RATE)
        record(account, meter_with(Usage(10, calls=1)), now=NOW)
        delete_account(user)  # two, so that both rows of a day lose their user
    record(account_of(cast), meter_with(Usage(5, calls=1)), now=NOW)  # a call that began before the deletion
    cast.workspace.delete()
    assert set(ModelUse.objects.values_list("workspace", "user")) == {(None, None)}
    assert sum(ModelUse.objects.values_list("tokens_in", flat=True)) == 25


def test_what_is_nobodys_is_added_up_as_well(cast: Cast) -> None:
    """Extraction for a deleted user, and calls whose user is deleted while they run."""
    nobody = Account(cast.workspace.pk, None, Purpose.MEMORY, RATE)
    nowhere = Account(0, 0, Purpose.MEMORY, RATE)
    for account in (nobody, nowhere, nobody, nowhere, account_of(cast, Purpose.MEMORY), nobody):
        record(account, meter_with(Usage(10, calls=1)), now=NOW)
    record(nobody, meter_with(Usage(10, calls=1)), now=NOW + timedelta(days=1))
    rows = ModelUse.objects.order_by("pk").values_list("workspace", "user", "tokens_in", "cost")
    one, here = Decimal("0.00002"), cast.workspace.pk
    assert list(rows) == [
        (here, None, 30, 3 * one), (None, None, 20, 2 * one), (here, cast.editor.pk, 10, one), (here, None, 10, one)
    ]  # fmt: skip


def test_embeddings_are_one_row_a_day_of_the_installation(settings: Settings) -> None:
    settings.EMBEDDING_PRICE = Price(Decimal("0.02"), Decimal(0))
    for _ in range(3):
        record_embedding("vectors-1", Usage(1000, calls=1))
    row = ModelUse.objects.get()
    assert (row.purpose, row.workspace, row.user, row.calls) == (Purpose.INDEX, None, None, 3)
    assert row.cost == Decimal("0.00006")


def test_a_persons_own_model_has_no_name_in_the_ledger(cast: Cast, settings: Settings) -> None:
    own, shared = make_connection(cast.editor, model="my-secret"), make_connection(model="house")
    assert rate_of(Chosen(model_of(own), own)) == Rate("", None)
    assert rate_of(Chosen(model_of(shared), shared)).model == "house"


@pytest.mark.django_db(transaction=True)
def test_many_at_once_lose_nothing(cast: Cast) -> None:
    account = account_of(cast)

    def one(_: int) -> None:
        record(account, meter_with(Usage(1, calls=1)), now=NOW)
        connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(one, range(12)))
    assert [row.tokens_in for row in ModelUse.objects.all()] == [12]


def test_amounts_are_short(settings: Settings) -> None:
    for money, currency, text in [
        ("0", "USD", "$0.00"),
        ("0.0041234", "USD", "$0.0041"),
        ("0.00000015", "EUR", "€0.00000015"),
        ("12.345", "EUR", "€12.35"),
        ("1234567.8", "CHF", "CHF\N{NO-BREAK SPACE}1,234,567.80"),
        ("0.099", "USD", "$0.099"),
    ]:
        settings.CURRENCY = currency
        assert amount(Decimal(money)) == text, (money, currency, text)


def test_a_bill_comes_back_as_it_was_stored() -> None:
    bill = Bill(10, 2, 3, 1, 1, 0, 4, 1, 0, 0, Decimal("0.00000015"))
    assert Bill.from_json(bill.as_json()) == bill and Bill.from_json(None) == Bill()
