"""What a failed answer says to the person: what went wrong, what is safe, what to do."""

from __future__ import annotations

import math

from django.utils.translation import gettext as _

from memoryhub.kept import kept
from memoryhub.llm.errors import ModelError

CUT = "length"  # error_code of an answer that is done as far as it goes
CUT_SENTENCE = kept("The answer reached the length limit of one reply.")
PLAN = "plan_waits"  # error_code of an answer that is done as far as its plan, which a person looks at
PLAN_SENTENCE = kept("The plan waits for you: change it or start the research.")
SAVED = kept("Your message is saved.")
SAVED_SO_FAR = kept("Your message and the text so far are saved.")
BROKEN = kept("Something went wrong here.")


def reason_of(error: ModelError, *, has_text: bool) -> str:
    """What went wrong and what is safe: kept with the answer in English, translated on the page and over REST."""
    parts = [str(error), _asked_to_wait(error.retry_after), SAVED_SO_FAR if has_text else SAVED]
    return " ".join(filter(None, parts))


def _asked_to_wait(seconds: float | None) -> str:
    if seconds is None or seconds < 1:
        return ""
    if seconds < 90:
        return kept("It asks to wait %s s.") % math.ceil(seconds)
    if (minutes := math.ceil(seconds / 60)) < 90:
        return kept("It asks to wait %s min.") % minutes
    return kept("It asks to wait for more than an hour.")


def advice_for(code: str) -> str:
    """What to do about a failure of this code, on the page; empty where Retry says it all."""
    elsewhere = _("Or choose another model beside the title.")
    put_right = _("The person who set up the connection can fix and test it.")
    advice = {
        CUT: _("Continue lets the model go on from there."),
        "model_refused": f"{put_right} {elsewhere}",
        "model_not_found": f"{put_right} {elsewhere}",
        "model_moved": f"{put_right} {elsewhere}",
        "model_address_refused": f"{put_right} {elsewhere}",
        "model_bad_request": f"{put_right} {elsewhere}",
        "model_rate_limited": _("Retry after a while.") + f" {elsewhere}",
        "no_model": elsewhere,
        "model_unavailable": _("Retried without success. Try again shortly.") + f" {elsewhere}",
        "model_timeout": _("Retry when it is less busy.") + f" {elsewhere}",
        "model_cut": _("Retry regenerates the answer."),
        "model_bad_reply": _("Retry.") + f" {elsewhere}",
        "content_filtered": _("Rephrase it: the same message will most likely be filtered again.")
        + f" {elsewhere}",
        "model_context_overflow": _(
            "Less of the conversation has already been tried. Shorten your message, start a new chat, or choose a "
            "model with a larger context beside the title."
        ),
        "model_not_local": _(
            "Nothing was sent to it. Choose a model marked local beside the title; an owner of the workspace can "
            "change what may leave."
        ),
    }
    return advice.get(code, "")
