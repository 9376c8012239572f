"""The page on which a program is connected: a key, and the lines to paste."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from allauth.account.decorators import reauthentication_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from memories.consent import memory_on
from workspaces.access import default_workspace
from workspaces.accounts.keys import PREFIX, make_key
from workspaces.models import KeyScope
from workspaces.views import PageRequest
from workspaces.views.forms import KeyForm


@require_http_methods(["GET", "POST"])
@reauthentication_required(allow_get=True)
def connect(request: PageRequest) -> HttpResponse:
    """Show how to connect programs. A new key is in the response to its form only, without a redirect, so that nothing
    stores it.
    """
    now, new_key = timezone.now(), ""
    default_workspace(request.user)  # the one a key is most often for
    sent = request.POST if request.method == "POST" else None
    form = KeyForm(sent, user=request.user, now=now, initial={"scope": KeyScope.WRITE})
    made = form.done(lambda: make_key(**form.cleaned_data, by=request.user, now=now))
    new_key = made[1] if made else ""
    base = request.build_absolute_uri("/").rstrip("/")
    context = {
        "form": form,
        "new_key": new_key,
        "models": models(base, new_key or NO_KEY),
        "tools": tools(base, new_key or NO_KEY),
        "memory_is_on": memory_on(request.user, None),
    }
    return render(request, "chat/connect.html", context, status=422 if form.errors else 200)


# The lines by which programs are connected, each as its own documentation has them.

NO_KEY = f"{PREFIX}…"  # in the place of one, where none was just made


@dataclass(frozen=True)
class Program:
    """``where``: a file, a shell, a page of the program. ``lines`` go there as they are."""

    name: str | Promise
    where: str | Promise
    lines: str


MODELS = (
    Program(
        "Python",
        "pip install openai",
        """from openai import OpenAI

client = OpenAI(base_url="%(url)s", api_key="%(key)s")
answer = client.chat.completions.create(
    model="default",
    messages=[{"role": "user", "content": "What do you know about me?"}],
)
print(answer.choices[0].message.content)""",
    ),
    Program(
        "JavaScript",
        "npm install openai",
        """import OpenAI from "openai";

const client = new OpenAI({ baseURL: "%(url)s", apiKey: "%(key)s" });
const answer = await client.chat.completions.create({
  model: "default",
  messages: [{ role: "user", content: "What do you know about me?" }],
});
console.log(answer.choices[0].message.content);""",
    ),
    Program(
        _("Claude Code, with the model of your workspace"),
        _("In the terminal from which you start it"),
        """export ANTHROPIC_BASE_URL=%(base)s
export ANTHROPIC_AUTH_TOKEN=%(key)s
export ANTHROPIC_MODEL=default ANTHROPIC_DEFAULT_HAIKU_MODEL=default
claude""",
    ),
    Program(
        "llm",
        _("In the file extra-openai-models.yaml, in the folder that “llm logs path” names"),
        """- model_id: memoryhub
  model_name: default
  api_base: %(url)s
  api_key_name: memoryhub

# llm keys set memoryhub --value %(key)s
# llm -m memoryhub "What do you know about me?\"""",
    ),
    Program(
        "Open WebUI",
        _(
            "In its admin settings under Connections, or in the environment of its server before its first start"
        ),
        "OPENAI_API_BASE_URL=%(url)s\nOPENAI_API_KEY=%(key)s",
    ),
    Program(
        "LibreChat",
        _("In the file librechat.yaml"),
        """version: 1.3.17
endpoints:
  custom:
    - name: "MemoryHub"
      apiKey: "%(key)s"
      baseURL: "%(url)s"
      models:
        default: ["default"]
        fetch: true""",
    ),
)


def models(base: str, key: str) -> Iterator[Program]:
    """Programs that speak to a model, in OpenAI's form or in Anthropic's: they get the memory with it."""
    for program in MODELS:
        yield replace(program, lines=program.lines % {"url": f"{base}/v1", "base": base, "key": key})


def tools(base: str, key: str) -> Iterator[Program]:
    """Programs with a model of their own: they get tools by which it looks things up and saves them."""
    url, headers = f"{base}/mcp", {"Authorization": f"Bearer {key}"}
    yield Program(
        _("Without a key: programs that can sign in"),
        _(
            "Add this address as a connector or MCP server. A page here then asks what it may do. Connectors of Claude"
            " and ChatGPT are called from the internet: for them the address must begin with https and be reachable."
        ),
        url,
    )
    yield Program(
        "Claude Code",
        _("In a terminal, once for all your projects"),
        f'claude mcp add --transport http --scope user memoryhub {url} --header "Authorization: Bearer {key}"',
    )
    yield Program(
        "Claude Desktop",
        _(
            "In the file that Settings, Developer, Edit config opens; needs Node.js, and the program started again"
        ),
        _file("mcpServers", _by_remote(url, key)),
    )
    yield Program(
        "Cursor", _("In the file ~/.cursor/mcp.json"), _file("mcpServers", {"url": url, "headers": headers})
    )
    yield Program(
        "VS Code",
        _("In the file that the command “MCP: Open User Configuration” opens"),
        _file("servers", {"type": "http", "url": url, "headers": headers}),
    )


def _by_remote(url: str, key: str) -> Mapping[str, object]:
    """For a program that starts its servers: one that passes on. At a space in an argument some would split it."""
    args = ["-y", "mcp-remote", url, "--header", "Authorization:${MEMORYHUB_HEADER}"]
    if url.startswith("http://"):  # refused without a word of yours, but on the same machine
        args.append("--allow-http")
    return {"command": "npx", "args": args, "env": {"MEMORYHUB_HEADER": f"Bearer {key}"}}


def _file(under: str, server: Mapping[str, object]) -> str:
    return json.dumps({under: {"memoryhub": server}}, indent=2, ensure_ascii=False)
