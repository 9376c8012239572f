"""Tests of a model connection: what works of it, in sentences for the person who connects it."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from memoryhub.llm.http_clients import Endpoint
from memoryhub.llm.model_check import STEPS, Outcome, Trial, try_model
from memoryhub.localization import translated
from workspaces.model_choice import address_range_of, key_of
from workspaces.models import User
from workspaces.models.language_models import Connection
from workspaces.quotas import spend


@dataclass(frozen=True)
class Line:
    """A step of a test. ``outcome``: works, fails or untried."""

    step: str
    outcome: Outcome
    text: str


@dataclass(frozen=True)
class Report:
    lines: list[Line]
    answers: bool
    seconds: float
    first_piece: float | None
    hints: list[str]  # where the test's result and the connection's settings differ

    @property
    def abilities(self) -> dict[str, bool]:
        """Return whether the model can use tools and write JSON, by the connection's field. Untested capabilities are
        left out.
        """
        names = {"tools": "has_tools", "json": "can_extract"}
        tried = (line for line in self.lines if line.step in names and line.outcome != "untried")
        return {names[line.step]: line.outcome == "works" for line in tried}


def try_connection(connection: Connection, *, by: User, now: datetime) -> Report:
    """Test the model with a word, a tool call and a JSON object. Takes at most half a minute.

    Raises TooManyRequests above the rate limit, because each test sends several requests.
    """
    spend("model tests", by, now=now)
    return report_on(connection)


def report_on(connection: Connection) -> Report:
    """Test the model of a connection and return a report. Stores nothing. The caller checks the rate limit."""
    key = key_of(connection)
    if key is None:
        unreadable = _("The stored key can no longer be read. Enter it again.")
        lines = [Line(step, "fails" if step == "key" else "untried", "") for step in STEPS]
        lines[STEPS.index("key")] = Line("key", "fails", unreadable)
        return Report(lines, False, 0.0, None, [])
    endpoint = Endpoint(connection.base_url, key, connection.model, address_range_of(connection))
    trial = try_model(endpoint, connection.capabilities)
    lines = [Line(step, trial.outcomes[step], _sentence(trial, step, bool(key))) for step in STEPS]
    return Report(lines, trial.answers, trial.seconds, trial.first_piece, _hints(connection, trial))


def _sentence(trial: Trial, step: str, has_key: bool) -> str:
    outcome = trial.outcomes[step]
    if outcome == "untried":
        return {
            "reachable": _("Not tried: whether the address answers."),
            "key": _("Not tried: whether the key is accepted."),
            "model": _("Not tried: whether the model is known."),
            "streams": _("Not tried: whether answers stream."),
            "tools": _("Not tried: whether it calls tools."),
            "json": _("Not tried: whether it writes JSON for extraction."),
        }[step]
    if outcome == "works":
        return {
            "reachable": _("The address answers."),
            "key": _("The key is accepted.") if has_key else _("No key is needed."),
            "model": _("The model is known."),
            "streams": _("Answers stream."),
            "tools": _("It calls tools."),
            "json": _("It writes JSON, so it can extract memories."),
        }[step]
    if step in trial.errors:
        return translated(str(trial.errors[step]))
    if step == "tools":
        return _("It did not call the tool.")
    return _("It did not write the JSON that was asked for.")


def _hints(connection: Connection, trial: Trial) -> list[str]:
    hints = []
    for step, says, name in (
        ("tools", connection.has_tools, _("Can call tools")),
        ("json", connection.can_extract, _("Can extract memories")),
    ):
        outcome = trial.outcomes[step]
        if outcome == "fails" and says:
            hints.append(_("“%(name)s” is on, but did not work: turn it off.") % {"name": name})
        if outcome == "works" and not says:
            hints.append(_("“%(name)s” is off, but would work.") % {"name": name})
    return hints
