"""Endpoints for programs that keep their own conversations: MCP, OpenAI's and Anthropic's protocols."""
