"""Settings of memory, recall and short-term memory."""

from memoryhub.settings.process import env

# None: off until enabled in the application; False: off for everyone.
MEMORY_ENABLED = env.boolean("MEMORY_ENABLED", None)
DEDUPE_THRESHOLD = env.number("DEDUPE_THRESHOLD", 0.92, low=0.0, high=1.0)
RECALL_THRESHOLD = env.number("RECALL_THRESHOLD", 0.57, low=0.0, high=2.0)
RECALL_LIMIT = env.integer("RECALL_LIMIT", 5, low=1, high=20)
MAX_MEMORIES = env.integer("MAX_MEMORIES", 500, low=0, high=10_000_000)
SHORT_TERM_MIN_MESSAGES = env.integer("SHORT_TERM_MIN_MESSAGES", 6, low=1, high=1000)
SHORT_TERM_OTHER_CHATS = env.integer("SHORT_TERM_OTHER_CHATS", 3, low=0, high=20)
