#!/usr/bin/env python3
"""An agent made with the official Python SDK of the Agent Client Protocol, for the supervisor's tests to speak with."""

import asyncio

from acp import (
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    start_tool_call,
    text_block,
    update_agent_message,
    update_agent_thought_text,
    update_tool_call,
)
from acp.schema import PermissionOption, ToolCallUpdate


class Scripted(Agent):
    """Thinks, requests permission to edit, and echoes the prompt. On "wait" it waits for a cancellation."""

    def __init__(self):
        self.client = None
        self.cancelled = {}
        self.prompts = {}

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, mcp_servers=None, **_):
        session = f"session-{len(self.prompts) + 1}"
        self.prompts[session] = 0
        self.cancelled[session] = asyncio.Event()
        return NewSessionResponse(session_id=session)

    async def cancel(self, session_id, **_):
        self.cancelled[session_id].set()

    async def prompt(self, session_id, prompt, **_):
        text = "".join(block.text for block in prompt)
        self.prompts[session_id] += 1
        if text == "wait":
            await self.say(session_id, "waiting,")
            await self.cancelled[session_id].wait()
            await self.say(session_id, " told to stop")
            return PromptResponse(stop_reason="cancelled")
        await self.client.session_update(session_id, update_agent_thought_text("hm"))
        await self.client.session_update(session_id, start_tool_call("t", "edit x", kind="edit", status="pending"))
        answer = await self.client.request_permission(
            session_id=session_id,
            tool_call=ToolCallUpdate(tool_call_id="t"),
            options=[
                PermissionOption(option_id="y", name="Yes", kind="allow_once"),
                PermissionOption(option_id="n", name="No", kind="reject_once"),
            ],
        )
        await self.client.session_update(session_id, update_tool_call("t", status="completed"))
        chosen = answer.outcome.option_id
        await self.say(session_id, f"prompt {self.prompts[session_id]}: you said {chosen} to {text}")
        return PromptResponse(stop_reason="end_turn")

    async def say(self, session_id, text):
        await self.client.session_update(session_id, update_agent_message(text_block(text)))


asyncio.run(run_agent(Scripted()))
