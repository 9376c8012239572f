"""Endpoints for client programs that store their own conversations: MCP and the OpenAI and Anthropic APIs."""
