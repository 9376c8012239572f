"""Page for connecting client programs: an API key, and the configuration to paste."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from memories.access import memory_on
from workspaces.access import default_workspace
from workspaces.accounts.keys import PREFIX, make_key
from workspaces.accounts.reauthentication import confirmed
from workspaces.models import KeyScope
from workspaces.views import PageRequest
from workspaces.views.forms import KeyForm


@require_http_methods(["GET", "POST"])
@confirmed(allow_get=True)
def connect(request: PageRequest) -> HttpResponse:
    """Show how to connect programs (GET), or create an API key, which only this response shows (POST)."""
    now = timezone.now()
    default_workspace(request.user)  # make sure that the workspace used most often for keys exists
    sent = request.POST if request.method == "POST" else None
    form = KeyForm(sent, user=request.user, now=now, initial={"scope": KeyScope.WRITE})
    key_and_secret = form.done(lambda: make_key(**form.cleaned_data, by=request.user, now=now))
    new_key = key_and_secret[1] if key_and_secret else ""
    base = request.build_absolute_uri("/").rstrip("/")
    context = {
        "form": form,
        "new_key": new_key,
        "models": models(base, new_key or NO_KEY),
        "tools": tools(base, new_key or NO_KEY),
        "memory_is_on": memory_on(request.user, None),
    }
    return render(request, "chat/connect.html", context, status=422 if form.errors else 200)


# Configuration of each program, as in the program's own documentation.

NO_KEY = f"{PREFIX}…"  # placeholder if no key was just created


@dataclass(frozen=True)
class Program:
    """Instructions for one program: ``lines`` to paste into ``where``, a file, a shell or a settings page."""

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
    """Yield the instructions for connecting programs that call a model through MemoryHub's OpenAI or Anthropic API."""
    for program in MODELS:
        yield replace(program, lines=program.lines % {"url": f"{base}/v1", "base": base, "key": key})


def tools(base: str, key: str) -> Iterator[Program]:
    """Yield the instructions for connecting programs that have their own model and use memories through MCP tools."""
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
    """Return the configuration of a local proxy to ``/mcp``. No argument has a space, where some programs split."""
    args = ["-y", "mcp-remote", url, "--header", "Authorization:${MEMORYHUB_HEADER}"]
    if url.startswith("http://"):  # mcp-remote refuses http to other machines without this option
        args.append("--allow-http")
    return {"command": "npx", "args": args, "env": {"MEMORYHUB_HEADER": f"Bearer {key}"}}


def _file(under: str, server: Mapping[str, object]) -> str:
    return json.dumps({under: {"memoryhub": server}}, indent=2, ensure_ascii=False)
