"""Command ``manage.py mcp``: an MCP server on standard input and output, started by desktop programs."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from asgiref.sync import sync_to_async
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections
from django.utils import timezone
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST

from chat.programs.mcp_server import make_server
from chat.programs.mcp_tools import asking
from memoryhub.errors import TooManyRequests
from workspaces.accounts.keys import KeyRefused, count_request, verify_key
from workspaces.models import ApiKey


class Command(BaseCommand):
    help = "Serve the memory of a workspace over MCP on standard input and output, with the key in MEMORYHUB_KEY."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--key",
            default="",
            help="An API key; better in MEMORYHUB_KEY, where no list of processes shows it.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        text = options["key"] or os.environ.get("MEMORYHUB_KEY", "")
        asking.set(_verified(text))
        anyio.run(_serve, text)


def _verified(text: str) -> ApiKey:
    """Return the API key with this text, and count one request. Raises CommandError if the key may not make one."""
    now = timezone.now()
    try:
        key = verify_key(text, now=now)
        seconds = count_request(key, now=now)
        if seconds is not None:
            raise TooManyRequests(retry_after=seconds)
    except (KeyRefused, TooManyRequests) as refusal:
        raise CommandError(str(refusal)) from None
    return key


async def _serve(text: str) -> None:
    from mcp.server.stdio import stdio_server

    server = make_server()

    async def verify_key_first(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        """Check the key before every request, because it may be revoked while the program runs."""
        try:
            key = await sync_to_async(_verified, thread_sensitive=True)(text)
            asking.set(key)
        except CommandError as refusal:
            raise MCPError(INVALID_REQUEST, str(refusal)) from None
        return await call_next(ctx)

    server.middleware.append(verify_key_first)
    try:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        await sync_to_async(connections.close_all, thread_sensitive=True)()
