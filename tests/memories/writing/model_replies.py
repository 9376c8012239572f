"""Sixty replies of models: the message, the reply, the memories stored, and those that wait for review.

The models follow the format; add chat, fences, thoughts, numbers or translations; stop at their limit; invent facts,
repeat the prompt or the assistant; or write invalid JSON.
"""

# ruff: noqa: E501  data, a line each

import json

SAID = "I am vegetarian and my project Falcon is due on March 15."
VEG, FALCON = "User is vegetarian.", "Project Falcon is due on March 15."


def entry(text: str, **more: object) -> dict[str, object]:
    return {"text": text, "kind": "fact", "importance": 0.7, **more}


ONE, BOTH = [entry(VEG)], [entry(VEG), entry(FALCON)]
one, both = json.dumps(ONE), json.dumps(BOTH)
wrapped = json.dumps({"memories": BOTH})
FAIR = {VEG, FALCON}
Case = tuple[str, str, set[str], set[str]]  # message, reply, stored, waiting

DRESSED = [
    both, wrapped, f"```json\n{both}\n```", f"```\n{wrapped}\n```", f"Here are the memories:\n\n{both}", f"{both}\n\nHope that helps!",
    json.dumps({"memories": BOTH}, indent=4), json.dumps({"facts": BOTH}), json.dumps({"count": 2, "results": BOTH}),
    f"<think>The user says [two] things.</think>\n{both}", f"<think>\n{one}\n</think>\n\n```json\n{wrapped}\n```",
    f"The user states {{facts}}.\n</think>\n\n{both}", f"First draft: {one}\nBetter:\n{both}", f"[]\nNo, wait: {both}",
    json.dumps(ONE[0]) + "\n" + json.dumps(BOTH[1]), json.dumps(ONE[0]) + ",\n" + json.dumps(BOTH[1]) + ",",
    "\ufeff" + both, f"As of [1] and [2]: {both}", f"{both}\n[1] from the message", wrapped[:-1], f"**Memories**\n\n{both}\n\n---",
]  # fmt: skip
COERCED = [
    json.dumps([entry(VEG, importance="0.7"), entry(FALCON, importance=" 0,9 ")]),
    json.dumps([entry(VEG, importance=None), entry(FALCON, kind=None)]),
    json.dumps([entry(VEG, kind="PREFERENCE "), entry(FALCON, kind="deadline")]),
    json.dumps([{"text": VEG}, {"text": FALCON, "importance": 9}]),
    json.dumps([entry(VEG), None, "noise", 3, entry(FALCON), entry("word " * 30), entry(" ")]),
    json.dumps([entry(VEG), entry("user is  vegetarian"), entry(FALCON, reason="it was said")]),
]
NEARLY = [
    str(BOTH), both.replace('"text"', '"content"'), both.replace('"text"', '"memory"'), json.dumps([VEG, FALCON]), both.replace("}]", ",},]"),
    both[:-1], f"```json\n{both[:-1]}, {{\"text\": \"User is veg", json.dumps({"a": BOTH[0], "b": BOTH[1]}), both.replace("0.7", '"high"'),
]  # fmt: skip
CUT = [both[:-2], both[: len(both) // 2 + 12], f"```json\n{both[:-20]}", wrapped[:-30]]
NOTHING = [
    "", "[]", '{"memories": []}', "{}", "null", "None", "There is nothing to remember.", f"{one}\n\nOn reflection nothing is lasting: []",
    one[:-2], f"```json\n{one[:-20]}", f"<think>{both}", f"<think>{both}</think>",
    f"<think>Let me list: {both}", "- User is vegetarian.\n- Falcon is due", '{"text": 5}', json.dumps({"memories": "none"}), "I can't help with that.",
    '{"memories": [{"text": "…", "kind": "fact", "importance": 0.7}]}',
    json.dumps([entry("Project Zilverwesp ships on the 9th.")]),
    json.dumps([entry("Die Schwester des Users, Wibke, verträgt keine Quitten.")]),
]  # fmt: skip
INVENTED: list[Case] = [
    (SAID, json.dumps([entry(VEG), entry("Project Falcon is due on March 16.")]), {VEG}, {"Project Falcon is due on March 16."}),
    (SAID, json.dumps([entry("User works for Acme in Berlin.")]), set(), {"User works for Acme in Berlin."}),
    (SAID, json.dumps([entry("User has 3 children."), entry(FALCON)]), {FALCON}, {"User has 3 children."}),
    ("My budget is 4,000 euros", json.dumps([entry("User's budget is 4000 euros.")]), {"User's budget is 4000 euros."}, set()),
    ("We launch tomorrow", json.dumps([entry("User launches on 2026-03-11.")]), {"User launches on 2026-03-11."}, set()),
    ("We launch soon", json.dumps([entry("User launches on 2026-03-11.")]), set(), {"User launches on 2026-03-11."}),
    ("Ich ziehe nach Köln", json.dumps([entry("User zieht nach Köln.")]), {"User zieht nach Köln."}, set()),
]  # fmt: skip

REPLIES: list[Case] = [
    *((SAID, reply, FAIR, set()) for reply in (*DRESSED, *COERCED, *NEARLY)),
    *((SAID, reply, {VEG}, set()) for reply in CUT),
    *((SAID, reply, set(), set()) for reply in NOTHING),
    *INVENTED,
]
