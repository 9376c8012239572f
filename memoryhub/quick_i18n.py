"""Django's translation at the price of none (tests/bench/bench_languages.py).

The ``translate`` tag looks each word up once in a language, and not each time it is shown: a page has hundreds of them,
and each was a lazy proxy and two dozen lookups, a fifth of what a page cost. And English, which is what is written in
the sources, is looked up nowhere (``English``). Which language is spoken, which each of these words asks, is a plain
context variable (``Spoken``). All take the place of Django's when the process begins (``install``).
"""

from __future__ import annotations

from contextvars import ContextVar
from gettext import NullTranslations
from typing import Any

from django.conf import settings
from django.template import Node
from django.template.base import Parser, Token
from django.template.context import Context
from django.templatetags import i18n
from django.utils.translation import get_language, trans_real


class English(NullTranslations):
    """In the place of the catalogues of Django and its apps, which have nothing in English: twelve lookups a word."""

    def to_language(self) -> str:
        return str(settings.LANGUAGE_CODE)


class Spoken:
    """In the place of asgiref's ``Local``, which keeps the same in such a variable, behind a lock and four calls."""

    _language: ContextVar[Any] = ContextVar("spoken", default=None)

    @property
    def value(self) -> Any:
        if (catalogue := self._language.get()) is None:
            raise AttributeError("value")  # as of whoever has not activated one
        return catalogue

    @value.setter
    def value(self, catalogue: Any) -> None:
        self._language.set(catalogue)

    @value.deleter
    def value(self) -> None:
        self._language.set(None)


def install() -> None:
    """For this process, before the first word is translated and the first template read."""
    i18n.register.tags |= {"translate": translate, "trans": translate}
    trans_real._translations[settings.LANGUAGE_CODE] = English()  # type: ignore[attr-defined]
    trans_real._active = Spoken()  # type: ignore[attr-defined]


class Translated(Node):
    """A ``translate`` of a text that stands in the template: the same whenever it is said in the same language."""

    def __init__(self, node: i18n.TranslateNode, name: str | None) -> None:
        self.node, self.name = node, name
        self.said: dict[str | None, Any] = {}

    def render(self, context: Context) -> Any:
        language = get_language()
        if (said := self.said.get(language)) is None:
            said = self.said[language] = self.node.render(context)
        if self.name is None:
            return said
        context[self.name] = said
        return ""


def translate(parser: Parser, token: Token) -> Node:
    node = i18n.do_translate(parser, token)
    name, node.asvar = node.asvar, None
    expression = node.filter_expression
    is_literal = expression.var.literal is not None and not expression.filters
    if is_literal and not node.message_context:
        return Translated(node, name)
    node.asvar = name
    return node
