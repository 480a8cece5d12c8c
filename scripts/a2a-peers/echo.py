#!/usr/bin/env python3
"""The peer of the A2A benchmark: an in-memory echo agent made with a2a-sdk 1.3.0.

    echo.py PORT

A message whose id begins with `echo-message` is answered by a message, any other by a task with one artifact. Speaks 1.x
and 0.3 by JSON-RPC, behind the fastest server that Python has for it.
"""

import sys

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message
from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.server.tasks.task_updater import TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette

port = int(sys.argv[1])


class Echo(AgentExecutor):
    async def execute(self, context, events):
        message = context.message
        heard = Part(text="".join(part.text for part in message.parts))
        updater = TaskUpdater(events, context.task_id, context.context_id)
        if message.message_id.startswith("echo-message"):
            await events.enqueue_event(updater.new_agent_message([heard]))
            return
        await events.enqueue_event(new_task_from_user_message(message))
        await updater.add_artifact([heard])
        await updater.complete()

    async def cancel(self, context, events):
        await TaskUpdater(events, context.task_id, context.context_id).cancel()


url = f"http://127.0.0.1:{port}"
card = AgentCard(
    name="echo", description="repeats what it hears", version="1", default_input_modes=["text/plain"],
    default_output_modes=["text/plain"], capabilities=AgentCapabilities(streaming=True),
    supported_interfaces=[AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=v) for v in ("1.0", "0.3")],
    skills=[AgentSkill(id="echo", name="echo", description="repeats", tags=["echo"])],
)
handler = DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=card)
routes = [*create_jsonrpc_routes(handler, rpc_url="/", enable_v0_3_compat=True), *create_agent_card_routes(card)]
uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="error", loop="uvloop", http="httptools")
