"""LangChain's client for OpenAI's API: an answer whole, and one streamed."""

import json
import os

from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="default", base_url=f"{os.environ['DOOR']}/v1", api_key=os.environ["KEY"])
whole = model.invoke("When is the deadline of Apollo?")
streamed = "".join(str(chunk.content) for chunk in model.stream("When is the deadline of Apollo?"))
print(json.dumps({"whole": whole.content, "streamed": streamed}))
