"""Attacks by staff: a world with secrets, every address of the admin, and forms filled in to escalate rights.

Addresses, actions and fields come from the admin's registry: new ones are tried automatically.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import urlencode

from allauth.core.exceptions import ReauthenticationRequired
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.sessions.backends.signed_cookies import SessionStore
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import models
from django.forms.models import inlineformset_factory
from django.http import Http404, HttpRequest, QueryDict
from django.test import RequestFactory
from django.urls import resolve

from chat.models import Chat
from memories.models import Memory
from tests.routes import FORM
from tests.staff_world import FINDABLE, World
from workspaces.models import (
    User,
    Workspace,
)

READING = {"read_private_chat", "read_personal_memory"}
BASE = "/admin/"


def visit(user: User, path: str, data: dict[str, Any] | None = None) -> Any:
    """Return the view's response, rendered; None if it refuses. Without middleware: thousands are sent."""
    factory = RequestFactory()
    if data is None:
        request: HttpRequest = factory.get(path)
    else:  # as a form without a file is sent; a multipart body takes longer to parse
        request = factory.post(path, urlencode(data, doseq=True), content_type=FORM)
    request.user = user
    request.session = SessionStore()
    request._messages = FallbackStorage(request)  # type: ignore[attr-defined]
    request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]
    request.resolver_match = match = _resolved(request.path_info)
    with suppress(PermissionDenied, Http404, SuspiciousOperation, ReauthenticationRequired):
        response = match.func(request, *match.args, **match.kwargs)
        return response.render() if hasattr(response, "render") and not response.is_rendered else response
    return None


_resolved = cache(resolve)  # each is resolved many times, and the admin's patterns are last


def pages(world: World) -> Iterator[str]:
    """Yield every address of the admin, with every row of the world where it takes one."""
    for route, name in _routes(admin.site.urls[0]):
        if name in {None, "login", "logout"}:  # only redirects
            continue
        if "<path:content_type_id>" in route:
            for model, rows in world.rows.items():
                content_type = ContentType.objects.get_for_model(model)
                yield from (f"{BASE}r/{content_type.pk}/{row.pk}/" for row in rows)
        elif "<path:object_id>" in route or "<id>" in route:
            model = apps.get_model(*route.split("/")[:2])
            for row in world.rows[model]:
                yield BASE + route.replace("<path:object_id>", str(row.pk)).replace("<id>", str(row.pk))
        elif name == "app_list":
            yield from (
                f"{BASE}{label}/" for label in {model._meta.app_label for model in admin.site._registry}
            )
        elif name == "autocomplete":
            yield from _searches()
        else:
            assert "<" not in route and "(" not in route, f"how is {route} asked?"
            yield BASE + route


def _routes(patterns: Any, before: str = "") -> Iterator[tuple[str, str | None]]:
    for each in patterns:
        if hasattr(each, "url_patterns"):
            yield from _routes(each.url_patterns, before + str(each.pattern))
        else:
            yield before + str(each.pattern), each.name


def _searches() -> Iterator[str]:
    for model in apps.get_models():
        for field in model._meta.fields:
            if field.is_relation:
                place = f"app_label={model._meta.app_label}&model_name={model._meta.model_name}"
                yield f"{BASE}autocomplete/?{place}&field_name={field.name}&term="


def narrowed(world: World, page: str) -> Iterator[str]:
    """Yield addresses that search a shown page for private data: a list in each way, others in all of them at once."""
    chat, memory = world.rows[Chat][0], world.rows[Memory][0]
    if page.endswith("&term="):
        yield from (f"{page}{term}" for term in (chat.public_id, memory.public_id, FINDABLE))
        return
    queries = (
        f"q={chat.public_id}",
        f"q={memory.public_id}",
        f"q={FINDABLE}",
        "state=live",
        "state=replaces",
        f"chat={chat.pk}",
        f"chat={chat.pk}&chat=0",
        "chat=",
        f"workspace={world.rows[Workspace][0].pk}",
    )
    is_a_list = len(page.removeprefix(BASE).split("/")) == 3
    yield from (f"{page}?{query}" for query in (queries if is_a_list else ["&".join(queries)]))


def spelled_out(page: str) -> Iterator[str]:
    """Yield filters of a list by the beginning of each text, of its rows and related rows: more rows confirm
    a guess.
    """
    app, model, *rest = [*page.removeprefix(BASE).split("/"), ""]
    if (app, model) in _models() and rest[0] == "":
        yield from (f"{page}?{path}__startswith=a" for path in _texts_from(_models()[app, model]))


def _texts_from(model: Any) -> Iterator[str]:
    """Yield each text of a model and its related models; one for those behind them."""
    yield from _own_texts(model)
    for near in _relations_of(model):
        yield from (f"{near.name}__{name}" for name in _own_texts(near.related_model))
        for far in _relations_of(near.related_model):
            yield from (f"{near.name}__{far.name}__{name}" for name in _own_texts(far.related_model)[-1:])


def _relations_of(model: Any) -> list[Any]:
    return [field for field in model._meta.get_fields() if field.is_relation and field.related_model]


def _own_texts(model: Any) -> list[str]:
    fields = model._meta.get_fields()
    return [field.name for field in fields if isinstance(field, models.CharField | models.TextField)]


def hostile_posts(
    world: World, user: User, page: str, shown: Any, *, each_field: bool
) -> Iterator[dict[str, Any]]:
    """Yield an attacker's posts: each action with every row, or the shown form with all fields changed and each."""
    parts = page.removeprefix(BASE).split("/")
    if len(parts) < 3 or (parts[0], parts[1]) not in _models():
        return
    model = _models()[parts[0], parts[1]]
    if parts[2] == "":
        yield from _actions(world, model)
        return
    form = _form(shown)
    bent = {name: value for field in _fields(model) for name, value in _bent(field, world)}
    rows = _new_rows(world, model)
    yield form | bent | rows | {"post": "yes", "password1": "a quiet evening", "password2": "a quiet evening"}
    if form:
        yield form | rows
        yield from (form | {name: value} for name, value in bent.items() if each_field)


def _models() -> dict[tuple[str, str], Any]:
    return {(each._meta.app_label, str(each._meta.model_name)): each for each in admin.site._registry}


def _fields(model: Any) -> list[Any]:
    return [field for field in (*model._meta.fields, *model._meta.many_to_many) if not field.primary_key]


def _actions(world: World, model: Any) -> Iterator[dict[str, Any]]:
    keys = [row.pk for row in world.rows[model]]
    for name in (*(admin.site._registry[model].actions or ()), "delete_selected", "make_verified"):
        yield {"action": name, "_selected_action": keys, "post": "yes", "confirmed": "yes"}


def _form(shown: Any) -> dict[str, Any]:
    """Return the fields of a page's form, as a browser would send it; empty without a form."""
    context = getattr(shown, "context_data", None) or {}
    if "adminform" not in context:
        return {}
    forms = [context["adminform"].form]
    for inline in context.get("inline_admin_formsets", ()):
        forms += [inline.formset.management_form, *inline.formset.forms]
    values = {form.add_prefix(name): form[name].value() for form in forms for name in form.fields}
    return {name: value for name, value in values.items() if value not in (None, False)}


def _new_rows(world: World, model: Any) -> dict[str, Any]:
    """Add one more row, naming the attacker, to each of the page's inline lists."""
    data: dict[str, Any] = {}
    for inline in admin.site._registry[model].inlines:
        fk_name = getattr(inline, "fk_name", None)
        formset = inlineformset_factory(model, inline.model, fields="__all__", fk_name=fk_name)
        prefix = formset.get_default_prefix()
        data |= {f"{prefix}-TOTAL_FORMS": "1", f"{prefix}-INITIAL_FORMS": "0"}
        for field in _fields(inline.model):
            data |= {f"{prefix}-0-{name}": value for name, value in _bent(field, world)}
        data[f"{prefix}-0-{formset.fk.name}"] = str(world.rows[model][0].pk)
    return data


def _bent(field: Any, world: World) -> Iterator[tuple[str, Any]]:
    match field:
        case models.ManyToManyField() if field.related_model is Permission:
            yield field.name, [str(pk) for pk in Permission.objects.values_list("pk", flat=True)]
        case models.ManyToManyField():
            yield field.name, [str(row.pk) for row in world.rows.get(field.related_model, ())]
        case models.ForeignKey() if field.related_model is User:
            yield field.name, str(world.attacker.pk)
        case models.ForeignKey():
            yield from ((field.name, str(row.pk)) for row in world.rows.get(field.related_model, ())[:1])
        case models.BooleanField():
            yield field.name, "on"
        case models.EmailField():
            yield field.name, "thief@example.com"
        case models.IntegerField() | models.FloatField():
            yield field.name, "1"
        case _ if field.choices:
            yield field.name, str(list(dict(field.flatchoices))[-1])
            yield field.name, str(next(iter(dict(field.flatchoices))))
        case _ if field.name == "base_url":
            yield field.name, "https://thief.example.com/v1"
        case _:
            yield field.name, "hostile"


def texts(response: Any) -> str:
    """Return the text of a response, with its redirect."""
    if response is None:
        return ""
    body = b"".join(response) if response.streaming else response.content
    said = " ".join(str(message) for message in getattr(response, "_messages", ()))
    return f"{body.decode()} {QueryDict(response.get('Location', '')).urlencode()} {said}"
