#!/usr/bin/env python3
"""Drives an A2A agent with Python's a2a-sdk 0.3.26 and prints the same facts as client_v1.py.

    client_v03.py URL jsonrpc|rest|grpc all|SCENARIO [TOKEN]

It can neither list tasks nor list or delete push configurations, so it says nothing about these.
"""

import asyncio
import base64
import json
import os
import sys
import uuid

import grpc
import httpx
from a2a import types
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import DataPart, FilePart, FileWithBytes, FileWithUri, Message, Part, TextPart

url, binding, wanted, *rest = sys.argv[1:]
token = rest[0] if rest else None
protocol = {"jsonrpc": "JSONRPC", "rest": "HTTP+JSON", "grpc": "GRPC"}[binding]
headers = {"Authorization": f"Bearer {token}"} if token else {}
http = httpx.AsyncClient(headers=headers, timeout=60)
cards = []


def tell(fact, **what):
    print(json.dumps({"fact": fact} | what), flush=True)


def text(parts):
    return "".join(part.root.text for part in parts if part.root.kind == "text")


def shown_token(details):
    """The token, which this client cannot show by itself over gRPC."""
    metadata = [*(details.metadata or []), *((name.lower(), value) for name, value in headers.items())]
    return details._replace(metadata=grpc.aio.Metadata(*metadata))


class Unary(grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(self, go_on, details, request):
        return await go_on(shown_token(details), request)


class Streaming(grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(self, go_on, details, request):
        return await go_on(shown_token(details), request)


def channel(address):
    return grpc.aio.insecure_channel(address, interceptors=[Unary(), Streaming()] if token else None)


def client(streaming, polling=False):
    config = ClientConfig(
        streaming=streaming, polling=polling, httpx_client=http, supported_transports=[protocol],
        grpc_channel_factory=channel,
    )
    return ClientFactory(config).create(cards[0])


def message(kind, parts=None, **more):
    parts = parts or [Part(root=TextPart(text="hello"))]
    return Message(message_id=f"{kind}-{uuid.uuid4()}", role="user", parts=parts, **more)


async def drain(stream):
    """Returns a copy of the event before the client modifies it."""
    seen = []
    async for event in stream:
        it = event if isinstance(event, Message) else event[1] or event[0]
        seen.append(it.model_copy(deep=True))
    return seen


async def send(kind, at_once=False, **more):
    return (await drain(client(False, at_once).send_message(message(kind, **more))))[0]


async def stream(kind):
    return await drain(client(True).send_message(message(kind)))


async def failure(act):
    try:
        done = await act
    except grpc.aio.AioRpcError as error:
        return error.code().name
    except Exception as error:  # noqa: BLE001: the error is the result
        code = getattr(getattr(error, "error", None), "code", None) or getattr(error, "status_code", None)
        return str(code or f"{type(error).__name__}: {error}")
    return f"none: {done}"


def told(events):
    words = {"task": "task", "message": "message", "status-update": "status", "artifact-update": "artifact"}
    pieces = [event for event in events if event.kind == "artifact-update"]
    last = events[-1]
    return {
        "kinds": [words[event.kind] for event in events],
        "states": [event.status.state.value for event in events if event.kind in ("task", "status-update")],
        "text": "".join(text(piece.artifact.parts) for piece in pieces),
        "artifacts": len({piece.artifact.artifact_id for piece in pieces}),
        "final": [event.final for event in events if event.kind == "status-update"],
        "ended": last.kind != "status-update" or last.final,
    }


async def card():
    mine = [(cards[0].preferred_transport, cards[0].url)]
    mine += [(i.transport, i.url) for i in cards[0].additional_interfaces or []]
    tell("card", name=cards[0].name, versions=[cards[0].protocol_version[:3] for t in mine if t[0] == protocol][:1],
         skills=len(cards[0].skills), streaming=cards[0].capabilities.streaming,
         push=cards[0].capabilities.push_notifications)
    if cards[0].supports_authenticated_extended_card:
        tell("extended", name=(await client(False).get_card()).name)


async def sent():
    task = await send("tck-complete-task")
    tell("sent", state=task.status.state.value, text=text(task.status.message.parts),
         has_context=bool(task.context_id))
    words = await send("tck-message-response")
    tell("message", text=text(words.parts), role=words.role.value)
    task = await send("tck-reject-task")
    tell("rejected", state=task.status.state.value)


async def streamed():
    tell("streamed", **told(await stream("tck-stream-001")))
    tell("chunked", **told(await stream("tck-stream-artifact-chunked")))
    tell("streamed_message", **told(await stream("tck-message-response")))


async def got():
    task = await send("tck-complete-task")
    found = await client(False).get_task(types.TaskQueryParams(id=task.id))
    tell("got", same=found.id == task.id, state=found.status.state.value, history=len(found.history or []))


async def canceled():
    task = await send("tck-input-required")
    tell("asked", state=task.status.state.value)
    after = await client(False).cancel_task(types.TaskIdParams(id=task.id))
    tell("canceled", state=after.status.state.value, same=after.id == task.id)


async def answered():
    task = await send("tck-input-required")
    after = await send("tck-complete-task", task_id=task.id, context_id=task.context_id)
    same = after.id == task.id and after.context_id == task.context_id
    tell("answered", state=after.status.state.value, same=same)


async def subscribed():
    task = await send("test-resubscribe-message-id", at_once=True)
    events = await drain(client(True).resubscribe(types.TaskIdParams(id=task.id)))
    tell("subscribed", before=task.status.state.value, same=events[0].id == task.id, **told(events))


def shown(part):
    if part.kind == "text":
        return {"kind": "text", "value": part.text, "name": "", "media": ""}
    if part.kind == "data":
        return {"kind": "data", "value": part.data, "name": "", "media": ""}
    file = part.file
    more = {"name": file.name or "", "media": file.mime_type or ""}
    if isinstance(file, FileWithBytes):
        return {"kind": "bytes", "value": base64.b64decode(file.bytes).decode(errors="replace")} | more
    return {"kind": "url", "value": file.uri} | more


async def parts():
    for kind in ("text", "file", "file-url", "data"):
        task = await send(f"tck-artifact-{kind}")
        tell(f"part_{kind}", **shown(task.artifacts[0].parts[0].root))
    raw = FileWithBytes(bytes=base64.b64encode(b"\x00\xff").decode(), name="a.bin", mime_type="application/octet-stream")
    given = [TextPart(text="look"), FilePart(file=raw),
             FilePart(file=FileWithUri(uri="https://example.com/a.txt", mime_type="text/plain")),
             DataPart(data={"n": 1})]
    task = await send("tck-complete-task", parts=[Part(root=part) for part in given])
    kept = (await client(False).get_task(types.TaskQueryParams(id=task.id))).history[0].parts
    tell("kept", kinds=[shown(part.root)["kind"] for part in kept],
         bytes=list(base64.b64decode(kept[1].root.file.bytes)))


async def pushed():
    it, task = client(False), await send("tck-input-required")
    config = types.PushNotificationConfig(id="mine", url="http://127.0.0.1:9/hook", token="t")
    asked = types.TaskPushNotificationConfig(task_id=task.id, push_notification_config=config)
    made = await it.set_task_callback(asked)
    ids = types.GetTaskPushNotificationConfigParams(id=task.id, push_notification_config_id="mine")
    found = await it.get_task_callback(ids)
    tell("pushed", id=made.push_notification_config.id, url=found.push_notification_config.url)


async def refused():
    it, done = client(True), await send("tck-complete-task")
    no = "00000000-0000-4000-8000-000000000000"
    tell(
        "refused",
        get=await failure(it.get_task(types.TaskQueryParams(id=no))),
        cancel=await failure(it.cancel_task(types.TaskIdParams(id=no))),
        cancel_done=await failure(it.cancel_task(types.TaskIdParams(id=done.id))),
        subscribe=await failure(drain(it.resubscribe(types.TaskIdParams(id=no)))),
        send=await failure(send("tck-complete-task", task_id=no)),
        send_done=await failure(send("tck-complete-task", task_id=done.id)),
    )


SCENARIOS = [card, sent, streamed, got, canceled, answered, subscribed, parts, pushed, refused]


async def main():
    cards.append(await A2ACardResolver(http, url).get_agent_card())
    for scenario in SCENARIOS:
        if wanted not in ("all", scenario.__name__):
            continue
        try:
            await asyncio.wait_for(scenario(), 30)
        except Exception as error:  # noqa: BLE001: the remaining checks still run
            tell("failed", scenario=scenario.__name__, error=f"{type(error).__name__}: {error}")
    await http.aclose()
    # Open channels are not needed any more.
    sys.stdout.flush()
    os._exit(0)


asyncio.run(main())
