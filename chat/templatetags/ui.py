"""General template tags and filters: icons, avatars, relative dates and form fields linked to their errors."""

from datetime import datetime
from functools import cache
from typing import Any
from zlib import crc32

from django import template
from django.forms import BaseForm, BoundField
from django.forms.utils import flatatt
from django.template import Context
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy

from chat.prompting.prompt_text import imported, withheld
from chat.rendering.highlighting import coloured
from chat.rendering.markdown import COLOURED_LENGTH
from chat.rendering.stored_html import html_or_source
from memoryhub.localization import file_size, isolated, translated
from workspaces.access import default_workspace
from workspaces.documents.reading.pictures import FACE_SIDE
from workspaces.model_choice import chosen_for
from workspaces.models import ArtifactKind, ArtifactVersion
from workspaces.spending.usage_records import amount

register = template.Library()


AVATAR_COLOURS = 5  # the number of chart colours, which differ clearly on every background (tokens.css)
# Whole phrases: "ago" changes the noun in German ("vor 3 Tagen"), and Arabic writes two without a number.
TIMES_AGO: dict[str, Any] = {  # lazy plurals, which the stub of timesince does not know
    "month": ngettext_lazy("%(num)d month ago", "%(num)d months ago", "num"),
    "week": ngettext_lazy("%(num)d week ago", "%(num)d weeks ago", "num"),
    "day": ngettext_lazy("%(num)d day ago", "%(num)d days ago", "num"),
    "hour": ngettext_lazy("%(num)d hour ago", "%(num)d hours ago", "num"),
    "minute": ngettext_lazy("%(num)d minute ago", "%(num)d minutes ago", "num"),
}
# Mirrored in right-to-left languages.
DIRECTIONAL = {"chevron-left", "chevron-right", "log-out", "panel-left", "undo-2"}


@register.simple_tag
@cache
def icon(name: str, classes: str = "") -> SafeString:
    """Render an icon of the sprite, hidden from screen readers. Cached, since a page has hundreds of few kinds."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        f"icon--directional {classes}" if name in DIRECTIONAL else classes,
        static("vendor/icons.svg"),
        name,
    )


@register.simple_tag
def icon_button(symbol: str, label: str, classes: str = "", **attributes: Any) -> SafeString:
    """Render a button with an icon and a tooltip. Other arguments become attributes: ``hx_get=…`` as ``hx-get``."""
    return format_html(
        '<button type="button" class="button button--quiet button--small button--icon {}" title="{}"{}>'
        '{}<span class="visually-hidden">{}</span></button>',
        classes,
        label,
        flatatt({name.replace("_", "-"): value for name, value in attributes.items()}),
        icon(symbol),
        label,
    )


@register.simple_tag
def avatar(person: Any, classes: str = "") -> SafeString:
    """Render a user's picture, or their initials if there is none. Hidden from screen readers."""
    picture: SafeString | str = ""
    if person.picture_version:
        address = reverse("workspaces:picture", args=[person.public_id])
        picture = format_html(
            '<img src="{}?v={}" alt="" width="{side}" height="{side}">',
            address,
            person.picture_version,
            side=FACE_SIDE,
        )
    colour = crc32(person.public_id.encode()) % AVATAR_COLOURS  # the same for a user every time
    return format_html(
        '<span class="avatar avatar--{} {}" aria-hidden="true">{}{}</span>',
        colour,
        classes,
        initials(person),
        picture,
    )


def initials(person: Any) -> str:
    """Return the initials of the first and last name, or of the user name."""
    names = person.get_full_name().split() or [person.get_username()]
    return "".join(name[0] for name in dict.fromkeys([names[0], names[-1]]))


register.filter("money", amount)
register.filter("file_size", file_size)
register.filter("isolated", isolated)
register.filter("imported", imported)
register.filter("withheld", withheld)
register.filter("translated", translated)


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """Render a time as “3 hours ago”, with the exact time as tooltip. After a month, render the date."""
    if moment is None:
        return ""
    age = timezone.now() - moment
    local = timezone.localtime(moment)
    if age.total_seconds() < 60:
        words = _("just now")
    elif age.days > 30:
        words = date_format(local, "DATE_FORMAT")
    else:
        words = timesince(moment, time_strings=TIMES_AGO, depth=1)
    exact = date_format(local, "DATETIME_FORMAT")
    return format_html(
        '<time datetime="{}" title="{} {}">{}</time>', moment.isoformat(), exact, local.tzname(), words
    )


@register.filter
def described(field: BoundField) -> SafeString:
    """Return the field's widget with ARIA attributes that refer to its help text and errors."""
    base = field.id_for_label
    notes = [f"{base}_error{number}" for number, _error in enumerate(field.errors, start=1)]
    if field.help_text:
        notes.append(f"{base}_helptext")
    attributes: dict[str, str | bool] = {"aria-describedby": " ".join(notes)} if notes else {}
    if any(each.__module__.startswith("allauth") for each in type(field.form).__mro__):
        attributes["placeholder"] = ""  # allauth's placeholder repeats the label
    if field.errors:
        attributes["aria-invalid"] = "true"
    return field.as_widget(attrs=attributes)


@register.filter
def focused(form: BaseForm) -> BaseForm:
    """Give the form's first invalid field, else its first field, the focus when the page loads."""
    fields = form.visible_fields()
    first = next((field for field in fields if field.errors), fields[0] if fields else None)
    if first is not None:
        first.field.widget.attrs["autofocus"] = True
    return form


@register.filter
def percent(score: float) -> int:
    """Return a score from 0 to 1 as a whole percentage. Other values are limited to this range."""
    return max(0, min(100, round(score * 100)))


@register.inclusion_tag("partials/leads_to.html")
def leads_to(address: str, symbol: str, **words: Any) -> dict[str, Any]:
    """Return the context of a section of a settings page with a button to another page.

    ``words``: the section's ``id``, ``title`` and ``text``, the button's ``label``, and ``danger``.
    """
    return {"address": address, "symbol": symbol, **words}


@register.simple_tag
def saves(url: str, section: str, also: str = "") -> SafeString:
    """Return the HTML attributes that make a form submit itself on change and update its section of the page.

    ``section``: id of the section's heading. ``also``: selectors of other elements to update, as “,#an-id,#another”.
    """
    return format_html(
        'hx-post="{}" hx-trigger="change, submit" hx-target="closest section" hx-swap="morph:outerHTML"'
        ' hx-select="section[aria-labelledby={}]" hx-select-oob="#toasts:morph{}" data-saves',
        url,
        section,
        also,
    )


@register.simple_tag
def artifact_html(shown: ArtifactVersion, kind: str) -> SafeString:
    """Return a version of an artifact as HTML, or as plain source if that is too expensive."""
    text = shown.content
    if kind in (ArtifactKind.MARKDOWN, ArtifactKind.TABLE):
        return html_or_source(text)
    language = "html" if kind == ArtifactKind.HTML else shown.language
    code = coloured(text, language if len(text) <= COLOURED_LENGTH else "")
    return mark_safe(f'<div class="code-block"><pre><code>{code}</code></pre></div>')  # noqa: S308  escaped by coloured


@register.filter
def get(mapping: dict[str, Any], key: str) -> Any:
    return mapping.get(key)


@register.simple_tag(takes_context=True)
def model_without_tools(context: Context) -> str:
    """Return the name of the default model of the user's own workspace if it cannot call tools, else ""."""
    user = context["request"].user
    model = chosen_for(default_workspace(user), user).model
    return "" if model.capabilities.has_tools else model.name or _("the built-in one")
