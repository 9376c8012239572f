// The protocol's own library: every tool, a resource and the prompt.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const requestInit = { headers: { Authorization: `Bearer ${process.env.KEY}` } };
const client = new Client({ name: "tests", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(`${process.env.DOOR}/mcp`), { requestInit }));
const call = async (name, args) => (await client.callTool({ name, arguments: args })).structuredContent;
const { tools } = await client.listTools();
const saved = await call("save_memory", { content: "Eddie's cat is called Tilly" });
const found = await call("recall_memory", { query: "What is the cat called?" });
const { resources } = await client.listResources();
const uri = resources.find((each) => each.uri.endsWith(saved.memory.id)).uri;
const read = await client.readResource({ uri });
const { prompts } = await client.listPrompts();
const prompt = await client.getPrompt({ name: prompts[0].name });
const gone = await call("forget_memory", { memory_id: saved.memory.id });
await client.close();
console.log(JSON.stringify({
  tools: tools.map((each) => each.name), found: found.memories.map((each) => each.content),
  read: read.contents[0].text, prompt: prompt.messages[0].content.text.includes("Tilly"), gone: gone.forgotten === saved.memory.id,
}));
