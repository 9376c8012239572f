"""Settings of the models that answer and embed, and of web search."""

from django.core.exceptions import ImproperlyConfigured

from memoryhub.settings.process import env

LLM_BASE_URL = env.url("LLM_BASE_URL")
# The built-in model that answers if no other is connected. "auto": the small model until the larger one is downloaded,
# if the machine has room for it; "large": the larger one on any machine; "small": only the small one; "off": none.
BUILTIN_MODEL = env.text("BUILTIN_MODEL", "auto").lower()
if BUILTIN_MODEL not in {"auto", "small", "large", "off"}:
    raise ImproperlyConfigured(
        f"MEMORYHUB_BUILTIN_MODEL is {BUILTIN_MODEL!r}, but must be auto, small, large or off."
    )
EMBEDDED_MODEL = LLM_BASE_URL is None and BUILTIN_MODEL != "off"
LLM_API_KEY = env.text("LLM_API_KEY")
LLM_MODEL = env.text("LLM_MODEL")
if LLM_BASE_URL and not LLM_MODEL:
    raise ImproperlyConfigured("MEMORYHUB_LLM_MODEL must name a model when MEMORYHUB_LLM_BASE_URL is set.")
if (LLM_MODEL or LLM_API_KEY) and not LLM_BASE_URL:
    raise ImproperlyConfigured(
        f"MEMORYHUB_LLM_{'MODEL' if LLM_MODEL else 'API_KEY'} needs MEMORYHUB_LLM_BASE_URL beside it. "
        "Leave all three unset for the built-in model."
    )
LLM_HAS_TOOLS = env.flag("LLM_HAS_TOOLS", not EMBEDDED_MODEL)
LLM_CAN_EXTRACT = env.flag("LLM_CAN_EXTRACT", not EMBEDDED_MODEL)
LLM_CONTEXT_TOKENS = env.integer(
    "LLM_CONTEXT_TOKENS", 2048 if EMBEDDED_MODEL else 16_384, low=512, high=10_000_000
)
LLM_MAX_TOKENS = env.integer("LLM_MAX_TOKENS", 400 if EMBEDDED_MODEL else 2048, low=16, high=1_000_000)
LLM_HISTORY_TOKENS = env.integer(
    "LLM_HISTORY_TOKENS", 700 if EMBEDDED_MODEL else 12_000, low=0, high=10_000_000
)
CURRENCY = env.text("CURRENCY", "USD").upper()
if not CURRENCY.isascii() or not CURRENCY.isalpha() or len(CURRENCY) != 3:
    raise ImproperlyConfigured(f"MEMORYHUB_CURRENCY is {CURRENCY!r}, but must be three letters such as EUR.")
LLM_TIMEOUT = env.number("LLM_TIMEOUT", 60.0, low=1, high=3600)
LLM_PRICE = env.price("LLM_PRICE")  # of LLM_MODEL; connections have prices of their own
LLM_SEES = env.boolean("LLM_SEES", None)  # None: detected when a picture is sent
LLM_LOCAL = env.boolean("LLM_LOCAL", None)  # None: whether the URL is on this machine
PEOPLE_MAY_CONNECT = env.flag("PEOPLE_MAY_CONNECT", False)  # whether users may connect their own models
PEOPLE_MAY_CONNECT_INTERNAL = env.flag("PEOPLE_MAY_CONNECT_INTERNAL", False)  # also in this server's network
# A SearXNG server, with which runs and research can search the web and read pages.
SEARCH_URL = env.url("SEARCH_URL")
EMBEDDING_BASE_URL = env.url("EMBEDDING_BASE_URL")
EMBEDDING_API_KEY = env.text("EMBEDDING_API_KEY")
EMBEDDING_PREVIOUS_API_KEY = env.text("EMBEDDING_PREVIOUS_API_KEY")
EMBEDDING_PRICE = env.price("EMBEDDING_PRICE")
EMBEDDING_LOCAL = env.boolean("EMBEDDING_LOCAL", None)  # like LLM_LOCAL
EMBEDDING_MODEL = env.text("EMBEDDING_MODEL")  # "none": no embedder, recall uses words only
if EMBEDDING_BASE_URL and EMBEDDING_MODEL in {"", "none"}:
    raise ImproperlyConfigured(
        "MEMORYHUB_EMBEDDING_MODEL must name a model when MEMORYHUB_EMBEDDING_BASE_URL is set."
    )
if EMBEDDING_MODEL not in {"", "none"} and not EMBEDDING_BASE_URL:
    raise ImproperlyConfigured(
        "MEMORYHUB_EMBEDDING_MODEL needs MEMORYHUB_EMBEDDING_BASE_URL beside it. Leave both unset for the bundled one."
    )
