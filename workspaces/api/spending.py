"""Usage and budgets of models over REST."""

from dataclasses import asdict
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import get_workspace
from workspaces.api.base import ApiView
from workspaces.api.fields import Body, Money, WholeNumber
from workspaces.api.schema import ID, documented_under
from workspaces.models import Role
from workspaces.spending import monthly_usage as totals
from workspaces.spending.budgets import MOST_MONEY, MOST_TOKENS, set_workspace_budget
from workspaces.spending.usage_records import Bill

documented = documented_under("workspaces")


class BillJson(serializers.Serializer[Any]):
    example = {"tokens_in": 1204, "tokens_out": 310, "calls": 1, "cost": "0.00412000"}
    tokens_in = serializers.IntegerField()
    cached = serializers.IntegerField(help_text="Of those in, from the provider's cache.")
    tokens_out = serializers.IntegerField()
    reasoning = serializers.IntegerField(help_text="Of those out, thoughts.")
    calls = serializers.IntegerField()
    estimated = serializers.IntegerField(help_text="Calls whose provider did not say what they took.")
    memory = serializers.IntegerField(help_text="Of those in, recalled memories; estimated.")
    documents = serializers.IntegerField(help_text="Of those in, passages of documents; estimated.")
    tools = serializers.IntegerField(help_text="Of those in, tools and what they returned; estimated.")
    unpriced = serializers.IntegerField(help_text="Calls of models without a price.")
    cost = serializers.CharField(allow_null=True, help_text="A decimal, as far as priced. null: nothing was.")

    def to_representation(self, bill: Bill) -> dict[str, Any]:
        return bill_json(bill)


class UsageLineJson(serializers.Serializer[Any]):
    example = {"name": "2026-11-23", "usage": BillJson.example}
    name = serializers.CharField(source="label", help_text="A day, a purpose, a model or a person.")
    usage = BillJson(source="bill")


class PlaceLineJson(UsageLineJson):
    example = {"id": f"chat_{ID}", "name": "Deadlines", "usage": BillJson.example}
    id = serializers.CharField(allow_null=True, help_text="null: of workspaces that you have left, together.")


class BudgetStandingJson(serializers.Serializer[Any]):
    example = {"of": "workspace", "tokens": 1_000_000, "money": None, "percent": 83}
    of = serializers.ChoiceField(choices=["workspace", "person"])
    tokens = serializers.IntegerField(allow_null=True)
    money = serializers.CharField(allow_null=True)
    tokens_taken = serializers.IntegerField()
    money_taken = serializers.CharField()
    is_estimate = serializers.BooleanField(
        help_text="Whether what some of the calls took was not said by their provider."
    )
    percent = serializers.IntegerField(help_text="Of this month's, at most 100: from there models stop.")


class UsageJson(serializers.Serializer[Any]):
    example = {"month": "2026-11", "currency": "USD", "total": BillJson.example}
    month = serializers.CharField(source="name")
    currency = serializers.CharField()
    total = BillJson()
    days = UsageLineJson(many=True)
    purposes = UsageLineJson(many=True)
    models = UsageLineJson(many=True)
    people = UsageLineJson(many=True, help_text="For owners everybody, for others themselves.")
    workspaces = PlaceLineJson(many=True, help_text="Of your own usage; of a workspace's none.")
    chats = PlaceLineJson(
        many=True,
        help_text="The twenty whose answers took most, of those that you may read: in the workspace; of your own "
        "usage those that you began. Answers only, to any person.",
    )
    budgets = BudgetStandingJson(many=True)


class UsageQuery(serializers.Serializer[Any]):
    month = serializers.RegexField(
        f"^{totals.MONTH.pattern}$",
        required=False,
        default="",
        error_messages={"invalid": totals.NO_MONTH},
        help_text="For example, 2026-11. The current month if left out.",
    )


class BudgetBody(Body):
    example = {"tokens": 5_000_000, "money": "20.00"}
    tokens = WholeNumber(
        min_value=0, max_value=MOST_TOKENS, allow_null=True, required=False, help_text="null: any number."
    )
    money = Money(decimal_places=2, max_value=MOST_MONEY, help_text="null: any amount.")


def bill_json(bill: Bill) -> dict[str, Any]:
    return {**asdict(bill), "cost": str(bill.cost) if bill.has_cost else None}


class OwnUsage(ApiView):
    @documented("usage_get", UsageJson, query=UsageQuery)
    def get(self, request: Request) -> Response:
        """Get your model usage of a month.

        Tokens and cost of every model call made for you, in all workspaces, by day, purpose, model, workspace and chat.
        """
        now = timezone.now()
        first = totals.month_of(self.query(UsageQuery)["month"], now=now)
        return Response(UsageJson(totals.of_person(self.person, first, now=now)).data)


class WorkspaceUsage(ApiView):
    @documented("workspace_usage_get", UsageJson, query=UsageQuery)
    def get(self, request: Request, workspace_id: str) -> Response:
        """Get a workspace's model usage of a month.

        Owners see the usage of all members; others see only their own.
        """
        now, workspace = timezone.now(), get_workspace(self.person, workspace_id)
        first = totals.month_of(self.query(UsageQuery)["month"], now=now)
        return Response(UsageJson(totals.of_workspace(workspace, self.person, first, now=now)).data)


class WorkspaceBudget(ApiView):
    @documented("workspace_budget_set", UsageJson, body=BudgetBody)
    def put(self, request: Request, workspace_id: str) -> Response:
        """Set a workspace's monthly budget.

        In tokens, money or both; null or left out: no limit. Owners only. At 80% the page warns, at 100% models that
        cost something stop until the month is over.
        """
        now, workspace = timezone.now(), get_workspace(self.person, workspace_id, need=Role.OWNER)
        values = {"tokens": None, "money": None} | self.body(BudgetBody)
        set_workspace_budget(workspace, **values, by=self.person, now=now)
        first = totals.month_of("", now=now)
        return Response(UsageJson(totals.of_workspace(workspace, self.person, first, now=now)).data)
