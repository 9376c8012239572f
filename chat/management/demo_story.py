"""The demo's people, chats and memories: a small cinema on its way to reopening. All of it is made up.

Days count back from the moment the command runs; ``{opening}`` and the like are dates from that moment on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SHARED, OWN = "shared", "own"
SHARED_NAME = "Apollo relaunch"
SHARED_DESCRIPTION = "The Apollo cinema reopens after its renovation: website, tickets, opening weekend."
# Role in the shared workspace → (suffix of the user name, first name, last name)
PEOPLE = {
    "owner": ("", "Dana", "Keller"),
    "editor": ("-mara", "Mara", "Lindqvist"),
    "viewer": ("-jonas", "Jonas", "Abebe"),
}
# Placeholders → days from now
DATES = {
    "first_opening": 33,
    "opening": 47,
    "press_day": 45,
    "tickets_on_sale": 19,
    "deposit": 11,
    "exam": 38,
}

# Named assistants of the shared workspace: name, description, instructions
ASSISTANTS = (
    (
        "Copy editor",
        "Reads texts for the website and the press",
        "Shorten what can be shortened. Keep the names of films and people as they are. Never promise seats or prices.",
    ),
)
# Nodes of the shared workspace: name, kind, a word by which its memories are found
NODES = (
    ("Mara Lindqvist", "person", "Mara"),
    ("Website", "project", "website"),
    ("Tickets", "topic", "ticket"),
    ("Opening weekend", "event", "opening"),
)
RELATIONS = (
    ("Mara Lindqvist", "builds", "Website"),
    ("Website", "sells", "Tickets"),
    ("Tickets", "are for", "Opening weekend"),
)


@dataclass(frozen=True)
class DemoChat:
    """``says`` alternates: a person, the assistant, a person, … ``who`` speaks for the person."""

    name: str
    title: str
    place: str
    days: float
    says: tuple[str, ...]
    who: str = "owner"


@dataclass(frozen=True)
class DemoMemory:
    """``at``: (name of a chat, position of the message it comes from). ``fields`` go into the draft."""

    name: str
    days: float
    category: str | None
    source: str
    text: str
    place: str = SHARED
    who: str = "owner"
    at: tuple[str, int] | None = None
    fields: dict[str, Any] = field(default_factory=dict)


def _m(name: str, days: float, category: str | None, source: str, text: str, **more: Any) -> DemoMemory:
    own = {key: more.pop(key) for key in ("place", "who", "at") if key in more}
    return DemoMemory(name, days, category, source, text, **own, fields=more)


CHATS = (
    DemoChat(
        "kickoff",
        "Kick-off: what the relaunch has to do",
        SHARED,
        82,
        (
            "We reopen the Apollo on {first_opening}. The old website has to go, it can't sell a single "
            "ticket. "
            "Where would you start?",
            "With what a visitor wants in the first ten seconds: what is on tonight, is there a seat, how "
            "do I get one. "
            "Everything else, the history, the café, the hire page, can sit one step behind that.",
            "Good. Then the programme of the day is the start page. No splash screen, no trailer that "
            "plays by itself.",
            "Then the start page is a list of today's films with times and free seats, and a trailer plays "
            "only when "
            "somebody asks for it. Shall I draft the order of the page?",
            "Please. And keep in mind that a third of our audience is over sixty: big type, no grey on grey.",
            "Noted. I will keep body text at 18 pixels or more and check every colour pair for contrast.",
        ),
    ),
    DemoChat(
        "tickets",
        "Which ticketing provider",
        SHARED,
        58,
        (
            "I compared three providers. Kassandra takes 0.39 € a ticket, Foyer 4 %, and Lumen a flat 180 "
            "€ a month. "
            "We sell about 2,100 tickets a month at 9.50 € on average.",
            "At 2,100 tickets that is about 819 € with Kassandra, 798 € with Foyer and 180 € with Lumen "
            "each month. "
            "Lumen pays off from roughly 460 tickets on.",
            "Lumen it is, then. Jonas already knows their till from his last house.",
            "That saves training as well. Before you sign, ask whether refunds go back to the card by "
            "themselves.",
            "They do, within five days. We decided for Lumen today, contract for one year.",
            "Good to know. I can draft a short notice for the team, with the reasons, whenever you like.",
        ),
    ),
    DemoChat(
        "seats",
        "Seat map and wheelchair places",
        SHARED,
        31,
        (
            "The new hall has 148 seats and four wheelchair places in row F. How do we show that on the map?",
            "Draw the four places as places of their own with the companion seat beside them, and let "
            "people book both "
            "in one step. Do not hide them behind a phone number.",
            "Agreed. Companions come in free, by the way, and the hearing loop works in rows B to H only.",
            "Then the map should say so where people choose: a small ear beside rows B to H, and the free "
            "companion "
            "seat named in the basket.",
        ),
        who="editor",
    ),
    DemoChat(
        "weekend",
        "Opening weekend",
        SHARED,
        9,
        (
            "Bad news from the builders: the screen frame comes two weeks late. We move the opening to "
            "{opening}.",
            "Then press day and the start of ticket sales move as well. Shall I list everything that hangs "
            "on the "
            "old date?",
            "Yes. And for the evening itself: Metropolis with live piano, then a short speech, then the bar. "
            "No speeches before the film, people come for the film.",
            "Metropolis first, then the speech, then the bar. With the longer restored version, you would "
            "be out of "
            "the hall at about 22:45.",
            "We take the 150 minute version. And Ines plays the piano, she confirmed this morning.",
            "Wonderful. I will add Ines to the running order and keep her sound check free at five.",
        ),
    ),
    DemoChat(
        "meals",
        "Dinners for the week",
        OWN,
        20,
        (
            "Can you plan five dinners? I'm vegetarian, Tom is allergic to walnuts, and Wednesday has to "
            "be quick.",
            "Monday lentil dal, Tuesday baked aubergine, Wednesday eggs in tomato sauce (20 minutes), "
            "Thursday "
            "mushroom barley, Friday pizza night. All without walnuts.",
            "Lovely. We don't like barley much, rice instead next time.",
            "Rice it is. I will leave barley out from now on.",
        ),
    ),
    DemoChat(
        "spanish",
        "Spanish, ten minutes a day",
        OWN,
        3,
        (
            "My B1 exam is on {exam}. Please correct only mistakes that change the meaning, the rest "
            "scares me off.",
            "Understood: only what could be misunderstood. Shall we start with how you would order in a "
            "bar in Cádiz?",
            "Sí. Quiero dos cañas y una tortilla, por favor, y la cuenta cuando puede.",
            "Everybody would understand you. One thing to carry with you: «cuando pueda» sounds more "
            "polite than "
            "«cuando puede» here.",
        ),
    ),
)

# One memory a paragraph reads better than one argument a line.
# fmt: off
MEMORIES = (
    # The shared workspace: what the team agreed on, noticed and looked up
    _m("audience", 82, "fact", "user",
       "A third of the Apollo's audience is over sixty: big type, strong contrast, no grey on grey.",
       at=("kickoff", 4), pinned=True, importance=0.9, tags=["audience", "design"]),
    _m("start-page", 82, "decision", "auto_chat",
       "The start page is today's programme with times and free seats.", at=("kickoff", 2), importance=0.8,
       tags=["website"]),
    _m("no-autoplay", 82, "instruction", "auto_chat",
       "Trailers never play by themselves; no splash screen.", at=("kickoff", 2), tags=["website"]),
    _m("opening-old", 82, "event", "auto_chat",
       "The Apollo cinema reopens its doors to the public on {first_opening}.", at=("kickoff", 0), importance=0.8),
    _m("opening-new", 9, "event", "auto_chat",
       "The Apollo cinema reopens its doors to the public on {opening}.", at=("weekend", 0), importance=0.9),
    _m("old-site", 81, "fact", "import",
       "The old website runs on a content system from 2009 that nobody can update any more.",
       source_details={"file": "handover-notes.txt"}),
    _m("domain", 81, "fact", "import",
       "The domain apollo-kino.example is paid until the end of next year.",
       source_details={"file": "handover-notes.txt"}),
    _m("hall-hire", 81, "fact", "import",
       "On Mondays the hall is hired out to the film club and two language schools.",
       source_details={"file": "handover-notes.txt"}),
    _m("archive", 81, None, "import",
       "Posters from 1957 on lie in eleven boxes in the projection room; some are mouldy.",
       source_details={"file": "handover-notes.txt"}),
    _m("tone", 79, "instruction", "user",
       "Write for the website the way the box office talks: short, warm, no exclamation marks.", pinned=True,
       importance=0.8, tags=["copy"], key="tone of voice"),
    _m("languages", 78, "decision", "user",
       "The website comes in German, English and Turkish, in that order.", tags=["website"]),
    _m("mara-role", 77, "fact", "user",
       "Mara designs the website and takes the photographs herself.", who="editor"),
    _m("jonas-role", 77, "fact", "user",
       "Jonas runs the house and has the last word on opening hours.", who="editor"),
    _m("budget", 75, "fact", "user",
       "The budget for website and tickets together is 14,000 €, of which 3,200 € are spent.",
       importance=0.7, tags=["money"]),
    _m("typeface", 72, "decision", "user",
       "Headlines are set in the lettering of the old neon sign, redrawn by Mara.", who="editor",
       tags=["design"]),
    _m("colours", 71, "decision", "user",
       "Midnight blue and warm brass are the house colours; red is for sold out only.", who="editor",
       tags=["design"]),
    _m("photos", 70, "preference", "user",
       "Mara prefers photographs of people in the foyer to pictures of empty seats.", who="editor",
       tags=["design"]),
    _m("research-phones", 66, "fact", "auto_research",
       "Of independent cinemas that publish numbers, 70 to 80 % of online tickets are bought on a phone, "
       "most of them after 17:00.", summary="Most tickets are bought on phones after 17:00."),
    _m("research-fees", 60, "fact", "auto_research",
       "Visitors forgive a booking fee that is part of the price from the start, and leave at one that "
       "appears at the end.", summary="Show the full price from the start."),
    _m("provider", 58, "decision", "auto_chat",
       "Tickets are sold through Lumen, on a contract for one year.", at=("tickets", 4), importance=0.8,
       tags=["tickets"]),
    _m("provider-why", 58, "fact", "auto_deep_think",
       "Lumen costs a flat 180 € a month and is cheaper than Kassandra and Foyer from about 460 tickets a "
       "month on.", at=("tickets", 1), tags=["tickets", "money"]),
    _m("volume", 58, "fact", "auto_chat",
       "The Apollo sells about 2,100 tickets a month at 9.50 € on average.", at=("tickets", 0),
       tags=["tickets"]),
    _m("refunds", 58, "fact", "user",
       "Refunds go back to the card by themselves within five days.", at=("tickets", 4), tags=["tickets"]),
    _m("reduced", 55, "fact", "user",
       "Reduced tickets are 7 €: pupils, students, pensioners, and anybody who asks kindly.", who="editor",
       tags=["tickets"]),
    _m("matinee", 52, "fact", "user",
       "Sunday matinees begin at 11 and include a coffee.", who="editor"),
    _m("newsletter", 50, "instruction", "user",
       "The newsletter goes out on Wednesdays at noon, never at weekends.", key="newsletter",
       tags=["newsletter"]),
    _m("subject-lines", 49, "preference", "model",
       "Dana likes newsletter subject lines that name one film and one day.", tags=["newsletter"]),
    _m("deposit", 44, "event", "user",
       "The second deposit for the seats is due on {deposit}.", importance=0.8, tags=["money"]),
    _m("council", 41, "event", "user",
       "The city council pays 6,000 € once the ramp at the side entrance is approved.",
       tags=["money", "access"]),
    _m("press-contact", 39, "contact", "user",
       "Press: Selma Öz writes about culture for the Stadtblatt and wants pictures two days ahead.",
       tags=["press"]),
    _m("hall", 31, "fact", "user",
       "The new hall has 148 seats and four wheelchair places in row F.", who="editor", at=("seats", 0),
       importance=0.7, tags=["access"]),
    _m("companions", 31, "instruction", "auto_chat",
       "Companions of wheelchair users come in free, and both places are booked in one step.", who="editor",
       at=("seats", 2), tags=["access", "tickets"]),
    _m("hearing-loop", 31, "fact", "auto_chat",
       "The hearing loop works in rows B to H only.", who="editor", at=("seats", 2), tags=["access"]),
    _m("sold-out", 27, "preference", "user",
       "Jonas wants sold out shows to stay on the page, with a waiting list.", who="editor",
       tags=["website", "tickets"]),
    _m("compaction", 25, "fact", "auto_compaction",
       "So far decided: programme first, Lumen for tickets, three languages, seat map with wheelchair "
       "places, brass and midnight blue.", summary="What was decided by now."),
    _m("café", 22, "fact", "user",
       "The café opens an hour before the first film and bakes its own cinnamon buns."),
    _m("dogs", 21, "decision", "user",
       "Every second Thursday dogs are welcome at the late show.", who="editor"),
    _m("popcorn", 18, "preference", "model",
       "The team would rather sell salted popcorn only; sweet popcorn ruins the seats."),
    _m("analytics", 16, "decision", "user",
       "No tracking on the website beyond counting page views on our own server.",
       tags=["website", "privacy"]),
    _m("premiere-film", 9, "decision", "auto_chat",
       "The opening night shows Metropolis, the 150 minute version, with live piano.", at=("weekend", 4),
       importance=0.8),
    _m("no-speeches", 9, "instruction", "user",
       "No speeches before the film: film first, then a short speech, then the bar.", at=("weekend", 2),
       pinned=True),
    _m("pianist", 9, "fact", "auto_chat",
       "Ines plays the piano on the opening night and needs a sound check at five.", at=("weekend", 4)),
    _m("press-day", 8, "event", "user",
       "Press day is {press_day}, with cinnamon buns and a tour of the projection room.", tags=["press"]),
    _m("sales-start", 8, "event", "user",
       "Tickets for the opening weekend go on sale on {tickets_on_sale} at ten in the morning.",
       tags=["tickets"], importance=0.7),
    _m("freeze", 2, "instruction", "user",
       "Nothing changes on the website in the three days before the opening.", who="editor",
       tags=["website"]),
    # Dana's own workspace
    _m("vegetarian", 88, "fact", "user",
       "I am vegetarian, and have been since I was nineteen.", place=OWN, scope="user", pinned=True,
       importance=0.9),
    _m("walnuts", 20, "fact", "auto_chat",
       "Tom is allergic to walnuts.", place=OWN, at=("meals", 0), importance=0.9),
    _m("quick-wednesday", 20, "preference", "auto_chat",
       "Wednesday dinners have to be quick, twenty minutes at most.", place=OWN, at=("meals", 0)),
    _m("no-barley", 20, "preference", "auto_chat",
       "We don't like barley much; rice instead.", place=OWN, at=("meals", 2)),
    _m("answers-short", 86, "instruction", "user",
       "Answer me in short paragraphs, and say so when you are not sure.", place=OWN, scope="user",
       importance=0.8),
    _m("exam", 3, "event", "auto_chat",
       "My Spanish B1 exam is on {exam}.", place=OWN, at=("spanish", 0), importance=0.7),
    _m("corrections", 3, "instruction", "auto_chat",
       "In Spanish, correct only mistakes that change the meaning.", place=OWN, at=("spanish", 0)),
    _m("bicycle", 64, "fact", "user",
       "My bicycle is a blue Peugeot from 1983; the rear tyre is 28 by 1.4 inches.", place=OWN),
    _m("library", 47, "fact", "user",
       "The library on Lindenstraße opens until eight on Tuesdays.", place=OWN),
    _m("mother", 40, "event", "user",
       "My mother turns seventy in the spring; she would love a weekend by the sea.", place=OWN,
       tags=["family"]),
    _m("sister", 36, "fact", "user",
       "My sister Lea lives in Porto and works nights, so call before noon.", place=OWN, tags=["family"]),
    _m("running", 29, "preference", "model",
       "Dana prefers running in the morning, and never two days in a row.", place=OWN),
    _m("plants", 15, "instruction", "user",
       "Water the lemon tree every four days and the cactus once a month.", place=OWN, tags=["home"]),
    _m("book", 12, "decision", "user",
       "The next book for the reading circle is The Dispossessed.", place=OWN),
    _m("gift", 5, None, "user",
       "Gift idea for Tom: the restored print of a Jacques Tati film.", place=OWN),
)
# fmt: on
