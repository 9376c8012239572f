// OpenAI's library: models, an answer whole and streamed, a tool, embeddings, /v1/responses and a refusal.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.env.DOOR}/v1`, apiKey: process.env.KEY, maxRetries: 0 });
const messages = [{ role: "user", content: "When is the deadline of Apollo?" }];
const models = [];
for await (const model of client.models.list()) models.push(model.id);
const whole = await client.chat.completions.create({ model: "default", messages });
const pieces = [];
let used = null;
for await (const chunk of await client.chat.completions.create({ model: "default", messages, stream: true })) {
  used ??= chunk.memoryhub?.used;
  pieces.push(chunk.choices[0]?.delta?.content ?? "");
}
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];
const called = await client.chat.completions.create({ model: "default", messages, tools });
const vectors = await client.embeddings.create({ model: "default", input: ["Cats purr"] });
const response = await client.responses.create({ model: "default", input: messages[0].content });
const refused = await client.chat.completions.create({ model: "nothing", messages }).catch((error) => error);
console.log(JSON.stringify({
  models, whole: whole.choices[0].message.content, memory: whole.memoryhub.used, streamed: pieces.join(""), used,
  tool: called.choices[0].message.tool_calls[0].function.name, dimensions: vectors.data[0].embedding.length,
  response: response.output_text, refused: [refused.status, refused.code],
}));
