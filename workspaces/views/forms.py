"""Forms of accounts, workspaces and their parts. The services that they call decide what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from allauth.account.forms import ChangePasswordForm
from django import forms
from django.contrib import messages as notices
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memoryhub import mail
from memoryhub.errors import DomainError
from workspaces.access import may_move_away, named_workspace, workspaces_of
from workspaces.accounts.keys import NAME_LENGTH as KEY_NAME_LENGTH
from workspaces.accounts.reauthentication import record_failed_reauthentication
from workspaces.actions import workspaces
from workspaces.actions.workspaces import DESCRIPTION_LENGTH, NAME_LENGTH
from workspaces.models import (
    Agent,
    Artifact,
    Document,
    KeyScope,
    Role,
    User,
    Webhook,
    WebhookEvent,
    Workspace,
)
from workspaces.models.audit_and_webhooks import WEBHOOK_NAME_LENGTH, WEBHOOK_URL_LENGTH
from workspaces.views import PageRequest

T = TypeVar("T")


def plain_field(**attrs: str) -> forms.TextInput:
    return forms.TextInput(attrs={"autocomplete": "off", **attrs})


class DomainForm(forms.Form):
    def done(self, act: Callable[[], T]) -> T | None:
        """Call ``act`` if the form is valid, and return its result, else None.

        If ``act`` raises a DomainError, add its errors to the form.
        """
        if self.is_bound and self.is_valid():
            try:
                return act()
            except DomainError as error:
                self.add_domain_error(error)
        return None

    def add_domain_error(self, error: DomainError) -> None:
        """Add the errors to the fields that they name, or to the whole form."""
        named = {name: text for name, text in error.fields.items() if name in self.fields}
        for name, text in named.items():
            self.add_error(name, text)
        if not named:
            self.add_error(None, error.message)


class NewPasswordForm(ChangePasswordForm):
    """allauth's form, which also records wrong current passwords in the audit log.

    A person who finds a browser signed in may be guessing the password.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        labels = {
            "oldpassword": _("Current password"),
            "password1": _("New password"),
            "password2": _("New password (again)"),
        }
        for name, label in labels.items():  # allauth capitalizes them
            self.fields[name].label = label

    def clean_oldpassword(self) -> str:
        try:
            return super().clean_oldpassword()
        except forms.ValidationError:
            record_failed_reauthentication(self.user, method="password_change")
            raise


class WorkspaceForm(DomainForm):
    name = forms.CharField(label=_("Name"), max_length=NAME_LENGTH)
    description = forms.CharField(
        label=_("What it is for"),
        max_length=DESCRIPTION_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
    )


class MemberForm(DomainForm):
    username = forms.CharField(label=_("Username"), max_length=150, widget=plain_field())
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.EDITOR)

    def clean_username(self) -> User:
        user = User.objects.filter(username=self.cleaned_data["username"].strip(), is_active=True).first()
        if user is None:
            raise forms.ValidationError(
                _(
                    "Nobody has this username. For a person without an account, create a link under Invitations."
                )
            )
        return user


class DeleteForm(DomainForm):
    """Form that requires typing the name before deleting, because deletion cannot be undone."""

    confirm = forms.CharField(label=_("Type the name of the workspace"), widget=plain_field())

    def __init__(self, *args: object, name: str, what: str = "workspace", **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.name = name
        if what == "account":
            self.fields["confirm"].label = _("Type your username")

    def clean_confirm(self) -> str:
        typed = self.cleaned_data["confirm"]
        if typed.strip() != self.name:
            raise forms.ValidationError(_("This is not its name."))
        return typed


class AgentForm(DomainForm):
    name = forms.CharField(label=_("Name"), max_length=workspaces.AGENT_NAME_LENGTH, widget=plain_field())
    description = forms.CharField(
        label=_("What it is for"),
        max_length=workspaces.AGENT_DESCRIPTION_LENGTH,
        required=False,
        widget=plain_field(),
    )
    instructions = forms.CharField(
        label=_("Instructions"),
        max_length=workspaces.INSTRUCTIONS_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text=_(
            "The model reads this before every answer in a chat with it, and every member may read it here."
        ),
    )

    @classmethod
    def of(cls, agent: Agent) -> AgentForm:
        return cls(initial={name: getattr(agent, name) for name in cls.base_fields})


class KeyForm(DomainForm):
    """Form of an API key: name, scope and expiry."""

    name = forms.CharField(
        label=_("Name"),
        max_length=KEY_NAME_LENGTH,
        widget=plain_field(),
        help_text=_("The program that will use it, so that you know which one to revoke."),
    )
    workspace = forms.ModelChoiceField(
        Workspace.objects.none(), to_field_name="public_id", empty_label=None, label=_("Workspace")
    )
    scope = forms.ChoiceField(label=_("Access"), choices=KeyScope.choices)
    expires_at = forms.TypedChoiceField(
        label=_("Expires"),
        coerce=int,
        initial=90,
        choices=[
            (30, _("In 30 days")),
            (90, _("In 90 days")),
            (365, _("In a year")),
            (0, _("Never")),
        ],
    )

    def __init__(self, *args: object, user: User, now: datetime, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.now = now
        self.fields["workspace"].queryset = Workspace.objects.visible_to(user)  # type: ignore[attr-defined]

    def clean_expires_at(self) -> datetime | None:
        """Return the expiry time after the chosen number of days, or None."""
        days = self.cleaned_data["expires_at"]
        return self.now + timedelta(days=days) if days else None


# Choice of a document's or artifact's readers, on its page: everyone in a workspace, or its owner alone.


def whose(row: Document | Artifact, user: User) -> dict[str, Any]:
    """Return the template context of the form that moves a document or artifact: the workspaces to choose from.

    There are none if the user may not move it. One query.
    """
    if not row.is_personal and not may_move_away(row, user, row.role):
        return {"places": []}
    return {"places": [each for each in workspaces_of(user) if Role(each.role).allows(Role.EDITOR)]}


def destination(request: PageRequest) -> Workspace | None:
    """Return the workspace chosen in the form, or None to make the item personal."""
    chosen = request.POST.get("whose", "")
    return named_workspace(request.user, chosen, need=Role.EDITOR) if chosen else None


def say_whose(request: PageRequest, moved: Document | Artifact) -> None:
    if moved.is_personal:
        text = gettext("Only you see “%(name)s” now, in all your workspaces.") % {"name": moved.title}
    else:
        names = {"name": moved.title, "workspace": moved.workspace.name}
        text = gettext("Everyone in %(workspace)s sees “%(name)s” now.") % names
    notices.success(request, text)


class InvitationForm(DomainForm):
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.EDITOR)
    most = forms.TypedChoiceField(
        label=_("For"),
        coerce=int,
        initial=1,
        choices=[(1, _("One person")), (10, _("Up to 10 people")), (100, _("Up to 100 people"))],
    )
    lasts = forms.TypedChoiceField(
        label=_("Valid for"),
        coerce=int,
        initial=7,
        choices=[(1, _("A day")), (7, _("A week")), (30, _("30 days"))],
    )
    email = forms.EmailField(
        label=_("Send it to"), required=False, widget=forms.EmailInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.auto_id = "invitation_%s"  # its page has another field for a role
        if not mail.is_set():
            del self.fields["email"]

    def clean_lasts(self) -> timedelta:
        return timedelta(days=self.cleaned_data["lasts"])


class BudgetFields(forms.Form):
    tokens = forms.IntegerField(label=_("Tokens per month"), required=False, min_value=0)
    money = forms.DecimalField(
        label=_("Cost per month"),
        required=False,
        min_value=0,
        decimal_places=2,
        max_digits=13,
        help_text=_(
            "Only calls of models with a price count. Leave both empty and there is no limit; a warning comes at 80%."
        ),
    )


ON = {
    "memory_saved": (WebhookEvent.MEMORY_SAVED, _("When a memory is saved")),
    "memory_changed": (WebhookEvent.MEMORY_CHANGED, _("When a memory is changed")),
    "memory_forgotten": (WebhookEvent.MEMORY_FORGOTTEN, _("When a memory is forgotten")),
    "run_finished": (WebhookEvent.RUN_FINISHED, _("When a run has finished")),
    "document_ready": (WebhookEvent.DOCUMENT_READY, _("When a document is ready")),
}


def _box(label: Any) -> forms.BooleanField:
    return forms.BooleanField(label=label, required=False)


class WebhookForm(DomainForm):
    name = forms.CharField(label=_("Name"), max_length=WEBHOOK_NAME_LENGTH, widget=plain_field())
    url = forms.CharField(
        label=_("Address"),
        max_length=WEBHOOK_URL_LENGTH,
        widget=plain_field(inputmode="url", placeholder="https://example.org/hooks"),
        help_text=_("Redirects are not followed."),
    )
    memory_saved = _box(ON["memory_saved"][1])
    memory_changed = _box(ON["memory_changed"][1])
    memory_forgotten = _box(ON["memory_forgotten"][1])
    run_finished = _box(ON["run_finished"][1])
    document_ready = _box(ON["document_ready"][1])
    with_text = _box(_("Send along what was saved or changed, not only its id"))

    @classmethod
    def of(cls, webhook: Webhook) -> WebhookForm:
        chosen = {name: event in webhook.events for name, (event, _label) in ON.items()}
        return cls(initial={name: getattr(webhook, name) for name in ("name", "url", "with_text")} | chosen)

    def values(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        events = [str(event) for name, (event, _label) in ON.items() if cleaned[name]]
        return {name: cleaned[name] for name in ("name", "url", "with_text")} | {"events": events}
