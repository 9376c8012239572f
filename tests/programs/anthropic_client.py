"""Anthropic's client: models, an answer whole and streamed, a tool's round trip, a picture, counting, errors."""

import json
import os

import anthropic

client = anthropic.Anthropic(base_url=os.environ["DOOR"], api_key=os.environ["KEY"], max_retries=0)
QUESTION = [{"role": "user", "content": "When is the deadline of Apollo?"}]
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
LOOK = {"name": "look", "description": "Look.", "input_schema": {"type": "object"}}
COMMON = {"model": "default", "max_tokens": 20_000}

whole = client.messages.create(**COMMON, messages=QUESTION, system="Be brief.", stop_sequences=["END"])
with client.messages.stream(**COMMON, messages=QUESTION) as stream:
    streamed = "".join(stream.text_stream)
    final = stream.get_final_message()
first = client.messages.create(**COMMON, messages=QUESTION, tools=[LOOK], tool_choice={"type": "any"})
[call] = [block for block in first.content if block.type == "tool_use"]
with client.messages.stream(**COMMON, messages=QUESTION, tools=[LOOK]) as stream:
    events = [event.type for event in stream]
    [streamed_call] = [block for block in stream.get_final_message().content if block.type == "tool_use"]
result = {
    "type": "tool_result",
    "tool_use_id": call.id,
    "content": [{"type": "text", "text": "Green."}, PICTURE],
}
last = client.messages.create(
    **COMMON,
    messages=[
        *QUESTION,
        {"role": "assistant", "content": first.to_param()["content"]},
        {"role": "user", "content": [result]},
    ],
)
refused = []
for wrong in ({"model": "nothing"}, {"max_tokens": 0}):
    try:
        client.messages.create(**{**COMMON, **wrong}, messages=QUESTION)
    except anthropic.APIStatusError as error:
        refused.append([type(error).__name__, error.body["error"]["type"]])
try:
    anthropic.Anthropic(base_url=os.environ["DOOR"], api_key="mh_no", max_retries=0).models.list()
except anthropic.AuthenticationError as error:
    refused.append([type(error).__name__, error.body["error"]["type"]])
print(
    json.dumps(
        {
            "models": [model.id for model in client.models.list()],
            "model": client.models.retrieve("scripted-model").display_name,
            "whole": whole.content[0].text,
            "memory": whole.memoryhub["used"],
            "streamed": streamed,
            "streamed_memory": final.memoryhub["used"],
            "stops": [whole.stop_reason, final.stop_reason, first.stop_reason],
            "usage": [whole.usage.input_tokens, whole.usage.output_tokens, final.usage.output_tokens],
            "call": [call.name, call.input, streamed_call.input],
            "events": events,
            "last": last.content[0].text,
            "counted": client.messages.count_tokens(
                model="default", messages=QUESTION, tools=[LOOK]
            ).input_tokens,
            "refused": refused,
        }
    )
)
