#!/usr/bin/env python3
"""The peer of the conversation benchmark: FastAPI, openai-agents and FastMCP with the same durability.

    OPENAI_BASE_URL=http://…/v1 OPENAI_API_KEY=… app.py DIR

Serves `POST /chat/stream` with our request and our events on a free port, in one worker, and says where. DIR holds its
databases. Tools are called over stdio and listed once, which was faster for it than streamable HTTP.
"""

import json
import socket
import sys
import uuid
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, set_tracing_disabled
from agents.mcp import MCPServerStdio
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

MODEL = "gpt-4o"
directory = Path(sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
set_tracing_disabled(True)


class Chat(BaseModel):
    input: str
    conversation_id: str | None = None


@asynccontextmanager
async def lifespan(app):
    arguments = [str(Path(__file__).with_name("tasks.py")), str(directory / "tasks.db")]
    tools = MCPServerStdio(
        {"command": sys.executable, "args": arguments}, cache_tools_list=True, client_session_timeout_seconds=60
    )
    async with tools:
        app.state.agent = Agent(
            name="assistant",
            instructions="You keep the user's list of tasks. Call the tools, then say in a sentence what was done.",
            model=OpenAIChatCompletionsModel(model=MODEL, openai_client=AsyncOpenAI()),
            mcp_servers=[tools],
        )
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/chat/stream")
async def chat(asked: Chat) -> StreamingResponse:
    return StreamingResponse(events(asked), media_type="text/event-stream")


async def events(asked):
    conversation_id = asked.conversation_id or str(uuid.uuid4())
    # In WAL, and with SQLite's own default of synchronous = FULL.
    session = SQLiteSession(conversation_id, directory / "conversations.db")
    try:
        run = Runner.run_streamed(app.state.agent, asked.input, session=session)
        yield event("thinking", content="The assistant is asked.")
        accumulated, called = "", {}
        async for item in run.stream_events():
            if item.type == "raw_response_event" and item.data.type == "response.output_text.delta":
                accumulated += item.data.delta
                yield event("response_delta", delta=item.data.delta, accumulated=accumulated)
            elif item.type == "run_item_stream_event" and item.name == "tool_called":
                call = item.item.raw_item
                called[call.call_id] = {"tool_name": call.name, "arguments": json.loads(call.arguments)}
                yield event("tool_call", **called[call.call_id], status="in_progress")
            elif item.type == "run_item_stream_event" and item.name == "tool_output":
                yield event("tool_call", **called[item.item.raw_item["call_id"]], status="completed")
        # Only after the last event has the session kept everything.
        yield event(
            "done",
            final_output=run.final_output,
            tools_called=[call["tool_name"] for call in called.values()],
            success=True,
            conversation_id=conversation_id,
            model=f"openai:{MODEL}",
        )
    finally:
        session.close()


def event(name, **data):
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="warning", access_log=False)
uvicorn.Server(config).run(sockets=[listener])
