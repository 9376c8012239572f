"""Measure a built-in model: speed, memory, forty tool requests, and its quality at other tasks.

python tests/bench/bench_built_in.py [--small] [--only speed,tools,titles,plans,summaries,synthesis,keeping]

The larger model's file must be in the data folder (manage.py fetch_model).
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import django
import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
django.setup()

from chat.prompting.prompt_text import prompt_text  # noqa: E402
from chat.tools import OF_EVERY_CHAT  # noqa: E402
from memories.judging.extraction.with_language_model import extract_with_model, propose, synthesize  # noqa: E402
from memoryhub.llm.base import Capabilities, ChatModel, Delta, Message, Tool  # noqa: E402
from memoryhub.llm.http_clients import Endpoint  # noqa: E402
from memoryhub.llm.openai_compatible import OpenAIChatModel  # noqa: E402
from memoryhub.local import large_model_download, model_server  # noqa: E402
from memoryhub.local.stack import answers  # noqa: E402
from tests.bench.bench_keeping import ENOUGH, _likeness, shingles  # noqa: E402
from tests.bench.judging_data import messages  # noqa: E402

SAVE, RECALL, SEARCH, ARTIFACT = "x_save_memory", "x_recall_memory", "x_workspace_search", "write_artifact"
NONE = ""
# A tool call inside an answer, which a person would see
TOOL_TEXT = re.compile(r"</?tools?|\"name\":|x_\w+_memory")
# Requests with the chat tool that each calls for; the last eleven of each language call for none.
REQUESTS: list[tuple[str, str]] = [
    ("Please remember that our office closes at six on Fridays.", SAVE),
    ("Save this: the staging password policy is reviewed every March.", SAVE),
    ("Remember that I prefer short answers.", SAVE),
    ("Look in my memories: what did I say about the Lisbon trip?", RECALL),
    ("Search the workspace for the contract with Brenner.", SEARCH),
    ("Find the document about onboarding new colleagues.", SEARCH),
    ("What is seven times eight?", NONE),
    ("Write a haiku about rain.", NONE),
    ("Hello, how are you?", NONE),
    ("What does HTTP stand for?", NONE),
    ("Translate 'good morning' into Spanish.", NONE),
    ("Thanks, that helped a lot!", NONE),
    ("Explain recursion in two sentences.", NONE),
    ("Merke dir bitte: Der Termin mit Frau Keller ist am 12. Mai.", SAVE),
    ("Speichere, dass ich keinen Koriander mag.", SAVE),
    ("Bitte behalte, dass Rechnungen immer montags rausgehen.", SAVE),
    ("Schau in deinen Erinnerungen nach: Wer ist unser Steuerberater?", RECALL),
    ("Durchsuche den Arbeitsbereich nach dem Urlaubsplan.", SEARCH),
    ("Finde das Protokoll der letzten Sitzung.", SEARCH),
    ("Wie viel ist 12 mal 12?", NONE),
    ("Schreibe einen Satz über den Herbst.", NONE),
    ("Guten Morgen!", NONE),
    ("Was ist eine Primzahl?", NONE),
    ("Übersetze 'Danke' ins Französische.", NONE),
    ("Was ist die Hauptstadt von Italien?", NONE),
    ("Danke, das reicht.", NONE),
    ("Souviens-toi que le code du portail change chaque mois.", SAVE),
    ("Enregistre que je suis végétarienne.", SAVE),
    ("Note bien : la réunion d'équipe est le mardi à dix heures.", SAVE),
    ("Cherche dans tes souvenirs : quel est le nom de mon chien ?", RECALL),
    ("Cherche dans l'espace de travail le devis de Martin.", SEARCH),
    ("Trouve le document sur les congés.", SEARCH),
    ("Combien font 9 fois 9 ?", NONE),
    ("Écris une phrase sur la mer.", NONE),
    ("Bonjour, ça va ?", NONE),
    ("Qu'est-ce qu'une variable en Python ?", NONE),
    ("Traduis 'bonsoir' en allemand.", NONE),
    ("Quelle est la capitale du Portugal ?", NONE),
    ("Merci beaucoup !", NONE),
    ("Donne-moi un synonyme de 'rapide'.", NONE),
]
FIRST = [
    "Can you help me plan a three-day trip to Lisbon with two small children in May?",
    "My Django migration fails with 'relation already exists' after I rebased. What can I do?",
    "Wie formuliere ich eine höfliche Absage an einen Bewerber, der sehr gut war?",
    "Warum ist mein Brot innen immer noch feucht, obwohl es außen dunkel ist?",
    "Quels documents faut-il pour inscrire un enfant à la crèche à Lyon ?",
    "Résume-moi les différences entre une SARL et une SAS.",
    "I keep waking up at 3 am. What could be the reason, and what helps?",
    "¿Cómo cambio la contraseña de mi router sin perder la conexión?",
    "请帮我给房东写一封邮件。我的暖气坏了。",
    "Compare Postgres and SQLite for a small shop with two employees.",
]
TITLE = (
    "Write a title of two to six words for a chat that begins with the message below, in its language. "
    "Answer with the title alone."
)
TASKS = [
    ("My project deadline is March 15; our launch needs a venue for 40 people and I am vegetarian.",
     "Suggest how we should spend the two weeks before the launch."),
    ("Unser Budget sind 3.000 Euro; Anna kann nur abends; der Raum fasst 25 Personen.",
     "Plane bitte den Workshop im Juni."),
    ("Le client préfère le bleu; la livraison est le 4 mai; Paul est en congé en avril.",
     "Que devons-nous faire d'abord ?"),
]  # fmt: skip
LONG = (
    (
        "user",
        "We are moving our shop from Magento to Shopify. The launch is on May 12, and Priya owns the data.",
    ),
    ("assistant", "Noted. How many products are there?"),
    ("user", "1,840 products, and 12 of them are bundles that Shopify can't do natively."),
    ("assistant", "Bundles need an app, for instance Bundler at 14 dollars a month."),
    (
        "user",
        "We decided against Bundler; Tom builds a small app himself by April 20. Keep answers short, please.",
    ),
    ("assistant", "All right."),
    ("user", "Also: redirects. We have 600 old links, the list is with the agency Nordlys until March 30."),
    ("assistant", "Then the import of redirects can be tested in April."),
)
SAID = [
    "Hi! So, uhm, I moved to Lisbon in March, my sister Anna stays in Porto. Could you find me a gym?",
    "please note: invoices over 500 euros are never paid before Priya has signed them, thanks!!",
    "Also ich esse kein Fleisch mehr, seit Januar, Fisch aber schon noch. Hast du ein Rezept?",
    "Unser Server heißt Heron, nicht Falke, das habe ich gestern falsch gesagt.",
    "Je préfère qu'on m'appelle le matin, l'après-midi je suis en réunion jusqu'à 17 h.",
    "Le mot de passe change tous les 90 jours, et c'est Karim qui s'en occupe.",
]
ASKED = [
    ("Should we take the train or fly to Berlin on May 4?", "The train takes four hours; the flight one."),
    ("Kannst du den Bericht jeden Freitag kürzer fassen?", "Gern, ich fasse ihn auf eine Seite."),
]
FACTS = ["May 12", "Priya", "1,840", "12", "Tom", "April 20", "600", "Nordlys", "March 30", "short"]


@contextmanager
def running(small: bool) -> Iterator[tuple[ChatModel, psutil.Process, float]]:
    """Start the model's server as the supervisor does. Yield the model, its process and its starting time."""
    port, key = model_server.free_port(), "bench"
    data = Path(os.environ.get("MEMORYHUB_DATA_DIR", ROOT / "var"))
    command = [
        sys.executable,
        "-m",
        "memoryhub.local.model_server",
        "--data-dir",
        str(data),
        "--port",
        str(port),
    ]
    command += [] if small else ["--large", "--anyway"]
    name = model_server.MODEL_NAME if small else large_model_download.NAME
    can = Capabilities(has_tools=True, can_extract=True, context_tokens=8192, local=True)
    began = time.monotonic()
    with subprocess.Popen(command, env={**os.environ, model_server.KEY_VARIABLE: key}) as process:
        try:
            while not answers(model_server.LOOPBACK, port, "/health"):
                time.sleep(0.1)
            endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", key, name)
            model = OpenAIChatModel(lambda: endpoint, can, timeout=300)
            yield model, psutil.Process(process.pid), time.monotonic() - began
        finally:
            process.kill()


async def ask(model: ChatModel, text: str, offered: tuple[Tool, ...]) -> list[Delta]:
    """Return the pieces of an answer."""
    system = f"{prompt_text('system')}\n{prompt_text('tools')}"
    prompt = [Message("system", system), Message("user", text)]
    return [piece async for piece in model.stream(prompt, max_tokens=80, tools=offered)]


def speed(model: ChatModel, process: psutil.Process) -> None:
    """Print the speed in CPU seconds, which other programs do not affect: the server computes on one core at a time
    where the machine has two.
    """
    filler = " ".join(f"Fact {number}: the shelf number {number * 7} is blue." for number in range(75))
    for name, text in (
        ("short question", "Tell a story of 150 words."),
        ("1,000 tokens of context", f"{filler}\nTell a story of 150 words."),
    ):
        began = process.cpu_times().user
        times: list[float] = []

        async def story(text: str = text, times: list[float] = times) -> None:
            prompt = [Message("system", prompt_text("system")), Message("user", text)]
            async for _piece in model.stream(prompt, max_tokens=100):
                times.append(process.cpu_times().user)

        asyncio.run(story())
        rate = (len(times) - 1) / max(times[-1] - times[0], 0.01)
        print(f"{name}: {times[0] - began:.1f} s to the first token, then {rate:.0f} tokens/s")
    print(f"memory: {process.memory_info().rss / 10**9:.2f} GB")


def tools(model: ChatModel, _process: psutil.Process) -> None:
    offered = tuple(tool.tool for tool in OF_EVERY_CHAT)
    right = [0, 0]
    of = [0, 0]
    for text, wanted in REQUESTS:
        pieces = asyncio.run(ask(model, text, offered))
        calls = [call.name for piece in pieces for call in piece.tool_calls]
        said = "".join(piece.text for piece in pieces).replace("\n", " ")
        is_right = calls == [wanted] if wanted else not calls and not TOOL_TEXT.search(said)
        of[bool(wanted)] += 1
        right[bool(wanted)] += is_right
        print("  right" if is_right else "  WRONG", repr(text), "→", calls or repr(said[:60]))
    print(f"tools: right call {right[1]} of {of[1]}, none where none is asked {right[0]} of {of[0]}")


def titles(model: ChatModel, _process: psutil.Process) -> None:
    for text in FIRST:
        title = model.complete(
            [Message("system", TITLE), Message("user", text)], max_tokens=30, temperature=0.0
        )
        print("  title", repr(text[:50]), "→", repr(title))


def plans(model: ChatModel, _process: psutil.Process) -> None:
    for facts, text in TASKS:
        prompt = [Message("system", prompt_text("system")), Message("system", facts),
                  Message("system", prompt_text("deep_think_plan")), Message("user", text)]  # fmt: skip
        print("  plan", repr(model.complete(prompt, max_tokens=250)))
    for answer, contradicts in (("The deadline is March 20.", True), ("The deadline is March 15.", False)):
        prompt = [Message("system", prompt_text("deep_think_check")),
                  Message("user", f"<memories>\n1. The deadline is March 15.\n</memories>\n<conversation>\n"
                          f"user: When is it?\nassistant: {answer}\n</conversation>")]  # fmt: skip
        print(
            "  check", contradicts, repr(model.complete(prompt, max_tokens=250, temperature=0.0, json=True))
        )


def summaries(model: ChatModel, _process: psutil.Process) -> None:
    said = "\n".join(f"{role}: {text}" for role, text in LONG)
    prompt = [
        Message("system", prompt_text("compact")),
        Message("user", f"<conversation>\n{said}\n</conversation>"),
    ]
    summary = model.complete(prompt, max_tokens=400)
    print("  summary", repr(summary))
    print(f"summaries: {sum(fact in summary for fact in FACTS)} of {len(FACTS)} facts kept")


def _completing(model: ChatModel, most: int, *, json: bool) -> Callable[[list[dict[str, str]]], str]:
    def complete(prompt: list[dict[str, str]]) -> str:
        asked = [Message("system" if m["role"] == "system" else "user", m["content"]) for m in prompt]
        return model.complete(asked, max_tokens=most, temperature=0.0, json=json)

    return complete


def synthesis(model: ChatModel, _process: psutil.Process) -> None:
    complete = _completing(model, 100, json=False)
    for text in SAID:
        print("  synthesis", repr(text), "→", repr(synthesize(complete, text)))
    for question, answer in ASKED:
        print(
            "  proposal",
            repr(question),
            "→",
            repr(propose(complete, [("user", question), ("assistant", answer)])),
        )


def keeping(model: ChatModel, _process: psutil.Process, most: int = 30) -> None:
    """Measure extraction by the model on the messages written last, on which nothing was fitted."""
    newest = [
        each for each in messages() if each.split == "held back, last" and each.language in {"en", "de", "fr"}
    ]
    newest = newest[:: max(1, len(newest) // most)]
    marked = right = kept = 0
    complete = _completing(model, 400, json=True)
    for message in newest:
        left = [message.text[a:b] for a, b, _ in message.facts]
        marked += len(left)
        found = [candidate.text for candidate in extract_with_model(complete, [("user", message.text)])]
        kept += len(found)
        for text in found:
            best = max(left, key=lambda fact: _likeness(shingles(text), shingles(fact)), default=None)
            if best is not None and _likeness(shingles(text), shingles(best)) >= ENOUGH:
                left.remove(best)
                right += 1
        print("  keeping", repr(message.text[:70]), "→", found)
    print(
        f"keeping: {len(newest)} messages, precision {right / max(kept, 1):.2f}, recall {right / max(marked, 1):.2f}"
    )


PARTS: dict[str, Callable[[ChatModel, psutil.Process], None]] = {
    part.__name__: part for part in (speed, tools, titles, plans, summaries, synthesis, keeping)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="the small model instead")
    parser.add_argument("--only", default=",".join(PARTS), help="which parts, comma-separated")
    options = parser.parse_args()
    with running(options.small) as (model, process, seconds):
        print(f"{model.name}: ready after {seconds:.1f} s, load of the machine {os.getloadavg()[0]:.1f}")
        for name in options.only.split(","):
            PARTS[name](model, process)


if __name__ == "__main__":
    main()
