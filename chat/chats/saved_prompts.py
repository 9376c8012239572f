"""Saved prompts: search and changes. ``{{name}}`` in a prompt is a variable, filled in when the prompt is used."""

import re
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Value
from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from chat.models import SavedPrompt
from chat.models.prompts import SavedPromptQuerySet
from memoryhub.errors import Conflict, Forbidden, Invalid, NotFound
from workspaces.access import get_workspace, lock_to_count
from workspaces.actions.workspaces import clean_text
from workspaces.models import Role, User, Workspace

NAME_LENGTH = 80
TEXT_LENGTH = 8000
MOST = 200  # limit per user and per workspace
MOST_VARIABLES = 20
OFFERED = 8  # suggestions below the message field
VARIABLE = re.compile(r"{{[ \t]*([^{}\n]{1,40}?)[ \t]*}}")


def variables_of(text: str) -> list[str]:
    """Return the variables' names in order, without duplicates: for “Write to {{name}}”, name."""
    return list(dict.fromkeys(name for name in VARIABLE.findall(text) if name.strip()))


def prompts_for(workspace: Workspace, user: User, q: str = "") -> SavedPromptQuerySet:
    """Return the prompts to use here that contain ``q``, matches in the name before those in the text. One query."""
    prompts = SavedPrompt.objects.visible_to(user, workspace).select_related("workspace", "created_by")
    if not q:
        return prompts.order_by(Lower("name"), "pk")
    by_name = prompts.filter(name__icontains=q).annotate(rank=Value(0))
    by_text = prompts.filter(text__icontains=q).exclude(name__icontains=q).annotate(rank=Value(1))
    return by_name.union(by_text).order_by("rank", "name")


def get_prompt(user: User, workspace: Workspace, public_id: str) -> SavedPrompt:
    """Return a prompt that the user may use in this workspace. Raises NotFound if there is none."""
    prompt = SavedPrompt.objects.visible_to(user, workspace).filter(public_id=public_id).first()
    if prompt is None:
        raise NotFound(_("This prompt does not exist, or you do not have access to it."))
    return prompt


def may_change(prompt: SavedPrompt, workspace: Workspace, user: User) -> bool:
    """Return whether the user may change the prompt.

    People may change their own prompts. A workspace's prompt may be changed by the workspace's owners, and by the
    prompt's creator while an editor.
    """
    if prompt.is_personal:
        return prompt.owner_id == user.pk
    role = Role(workspace.role)
    return role.allows(Role.OWNER) or (role.allows(Role.EDITOR) and prompt.created_by_id == user.pk)


def require_own(prompt: SavedPrompt, workspace: Workspace, by: User) -> None:
    if not may_change(prompt, workspace, by):
        raise Forbidden(_("Only the person who made a prompt and the workspace's owners can change it."))


def save_prompt(
    workspace: Workspace, *, name: str, text: str, personal: bool, by: User, now: datetime
) -> SavedPrompt:
    """Create a prompt: a personal one, or one for the workspace, which requires the role of editor.

    Raises Invalid for an invalid or taken name and an invalid text, Conflict if there are MOST prompts, and Forbidden
    for a viewer who saves one for the workspace.
    """
    workspace = get_workspace(by, workspace.public_id, need=Role.VIEWER if personal else Role.EDITOR)
    of = {"owner": by} if personal else {"workspace": workspace}
    name, text = _clean(name, text)
    with transaction.atomic():
        lock_to_count(by if personal else workspace)
        if SavedPrompt.objects.filter(**of).count() >= MOST:
            why = _("There are %s prompts, which is as many as there can be. Delete one first.")
            raise Conflict(why % MOST)
        return _stored(SavedPrompt(created_by=by, name=name, text=text, created_at=now, updated_at=now, **of))


def update_prompt(
    prompt: SavedPrompt,
    workspace: Workspace,
    *,
    by: User,
    now: datetime,
    name: str | None = None,
    text: str | None = None,
) -> SavedPrompt:
    """Change the name or text if given. Raises Forbidden without the right, Invalid for an invalid value."""
    require_own(prompt, workspace, by)
    name, text = prompt.name if name is None else name, prompt.text if text is None else text
    prompt.name, prompt.text = _clean(name, text)
    prompt.updated_at = now
    return _stored(prompt)


def delete_prompt(prompt: SavedPrompt, workspace: Workspace, *, by: User) -> None:
    require_own(prompt, workspace, by)
    prompt.delete()


def _clean(name: str, text: str) -> tuple[str, str]:
    name = clean_text("name", " ".join(name.split()), low=1, high=NAME_LENGTH)
    text = clean_text("text", text.strip(), low=1, high=TEXT_LENGTH)
    if len(variables_of(text)) > MOST_VARIABLES:
        raise Invalid(fields={"text": _("At most %d variables.") % MOST_VARIABLES})
    return name, text


def _stored(prompt: SavedPrompt) -> SavedPrompt:
    try:
        with transaction.atomic():
            prompt.save()
    except IntegrityError:
        raise Invalid(fields={"name": _("Another prompt has this name.")}) from None
    return prompt
