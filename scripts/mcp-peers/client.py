#!/usr/bin/env python3
"""Drives an MCP server like a client application and prints its observations as one JSON object.

    client.py mcp|fastmcp modern|legacy accept|decline|unable|untold http URL [TOKEN]
    client.py mcp|fastmcp modern|legacy accept|decline|unable|untold stdio PROGRAM [ARGUMENT ...]

The third word says what its user does when asked: agree, refuse, or nothing because the client cannot ask; the last
two differ in whether the client then says `confirmation: true` by itself.
"""

import asyncio
import json
import os
import sys

import fastmcp
import httpx2
import mcp
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

library, era, consent, transport, *rest = sys.argv[1:]
mode = {"modern": "2026-07-28", "legacy": "legacy"}[era]
asked = []


def answer(message):
    asked.append(message)
    return "accept" if consent == "accept" else "decline"


def connect_mcp():
    async def ask(_context, params):
        action = answer(params.message)
        return mcp.types.ElicitResult(action=action, content={} if action == "accept" else None)

    if transport == "stdio":
        server = StdioServerParameters(command=rest[0], args=rest[1:], env=dict(os.environ))
    else:
        headers = {"Authorization": f"Bearer {rest[1]}"} if len(rest) > 1 else {}
        server = streamable_http_client(rest[0], http_client=httpx2.AsyncClient(headers=headers, timeout=60))
    can_ask = consent in ("accept", "decline")
    return mcp.Client(server, mode=mode, elicitation_callback=ask if can_ask else None)


def connect_fastmcp():
    async def ask(message, _type, _params, _context):
        action = answer(message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    if transport == "stdio":
        server = StdioTransport(command=rest[0], args=rest[1:], env=dict(os.environ), keep_alive=False)
    else:
        headers = {"Authorization": f"Bearer {rest[1]}"} if len(rest) > 1 else {}
        server = StreamableHttpTransport(rest[0], headers=headers)
    can_ask = consent in ("accept", "decline")
    return fastmcp.Client(server, mode=mode, elicitation_handler=ask if can_ask else None)


async def call(client, name, arguments):
    """The result as far as both libraries show it alike."""
    try:
        if library == "fastmcp":
            result = await client.call_tool(name, arguments, raise_on_error=False)
        else:
            result = await client.call_tool(name, arguments)
    except Exception as error:  # noqa: BLE001: how a protocol error looks is the library's own
        code = getattr(error, "code", None) or getattr(getattr(error, "error", None), "code", None)
        return {"protocol_error": code, "message": str(error)}
    return {
        "is_error": result.is_error,
        "data": result.structured_content,
        "text_is_data": json.loads(result.content[0].text) == result.structured_content,
    }


async def main():
    async with {"mcp": connect_mcp, "fastmcp": connect_fastmcp}[library]() as client:
        tools = await client.list_tools()
        tools = tools if isinstance(tools, list) else tools.tools
        added = await call(client, "add_task", {"title": "buy milk", "priority": "high"})
        task = {"task_id": added["data"]["task_id"]}
        report = {
            "tools": {
                tool.name: tool.annotations.model_dump(by_alias=True, exclude_none=True) for tool in tools
            },
            "added": added,
            "listed": await call(client, "list_tasks", {}),
            "invalid": await call(client, "add_task", {"title": ""}),
            "unknown": await call(client, "no_such_tool", {}),
            "deleted": await call(client, "delete_task", task | ({"confirmation": True} if consent == "unable" else {})),
            "left": await call(client, "list_tasks", {}),
        }
    print(json.dumps(report | {"asked": asked}))


asyncio.run(main())
