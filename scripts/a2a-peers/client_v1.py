#!/usr/bin/env python3
"""Drives an A2A agent with Python's a2a-sdk 1.3.0 and prints one JSON object per line for each observation.

    client_v1.py URL jsonrpc|rest|grpc all|SCENARIO [TOKEN]

The agent is the scripted one: what it does follows from how the id of a message begins. The four clients print the same
facts in the same words (states as 0.3 writes them), so that one test judges all of them.
"""

import asyncio
import json
import os
import sys
import uuid

import grpc
import httpx
from a2a.client import ClientCallContext, ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict

url, binding, wanted, *rest = sys.argv[1:]
token = rest[0] if rest else None
protocol = {"jsonrpc": "JSONRPC", "rest": "HTTP+JSON", "grpc": "GRPC"}[binding]
headers = {"Authorization": f"Bearer {token}"} if token else {}
http = httpx.AsyncClient(headers=headers, timeout=60)
context = ClientCallContext(service_parameters=headers) if token and binding == "grpc" else None
cards = []


def tell(fact, **what):
    print(json.dumps({"fact": fact} | what), flush=True)


def state(task_or_update):
    return pb.TaskState.Name(task_or_update.status.state).removeprefix("TASK_STATE_").lower().replace("_", "-")


def text(parts):
    return "".join(part.text for part in parts)


def client(streaming):
    # A card names a port for gRPC as `host:port`.
    config = ClientConfig(
        streaming=streaming, httpx_client=http, supported_protocol_bindings=[protocol],
        grpc_channel_factory=grpc.aio.insecure_channel,
    )
    return ClientFactory(config).create(cards[0])


def request(kind, words="hello", **message):
    parts = message.pop("parts", None) or [pb.Part(text=words)]
    message = pb.Message(message_id=f"{kind}-{uuid.uuid4()}", role=pb.ROLE_USER, parts=parts, **message)
    return pb.SendMessageRequest(message=message)


async def send(kind, at_once=False, **message):
    asked = request(kind, **message)
    asked.configuration.return_immediately = at_once
    return [event async for event in client(False).send_message(asked, context=context)][0]


async def failure(act):
    try:
        done = await act
    except Exception as error:  # noqa: BLE001: the error is the result
        return type(error).__name__
    return f"none: {done}"


async def drain(stream):
    return [event async for event in stream]


def told(events):
    kinds = [event.WhichOneof("payload") for event in events]
    states = [state(getattr(e, k)) for e, k in zip(events, kinds) if k in ("task", "status_update")]
    pieces = [e.artifact_update for e in events if e.HasField("artifact_update")]
    words = {"task": "task", "message": "message", "status_update": "status", "artifact_update": "artifact"}
    return {
        "kinds": [words[kind] for kind in kinds],
        "states": states,
        "text": "".join(text(piece.artifact.parts) for piece in pieces),
        "artifacts": len({piece.artifact.artifact_id for piece in pieces}),
    }


async def card():
    mine = [i for i in cards[0].supported_interfaces if i.protocol_binding == protocol]
    tell("card", name=cards[0].name, versions=[i.protocol_version for i in mine], skills=len(cards[0].skills),
         streaming=cards[0].capabilities.streaming, push=cards[0].capabilities.push_notifications)
    if cards[0].capabilities.extended_agent_card:
        more = await client(False).get_extended_agent_card(pb.GetExtendedAgentCardRequest(), context=context)
        tell("extended", name=more.name)


async def sent():
    task = (await send("tck-complete-task")).task
    tell("sent", state=state(task), text=text(task.status.message.parts), has_context=bool(task.context_id))
    words = (await send("tck-message-response")).message
    tell("message", text=text(words.parts), role=pb.Role.Name(words.role).removeprefix("ROLE_").lower())
    task = (await send("tck-reject-task")).task
    tell("rejected", state=state(task))


async def streamed():
    events = await drain(client(True).send_message(request("tck-stream-001"), context=context))
    tell("streamed", **told(events))
    events = await drain(client(True).send_message(request("tck-stream-artifact-chunked"), context=context))
    tell("chunked", **told(events))
    events = await drain(client(True).send_message(request("tck-message-response"), context=context))
    tell("streamed_message", **told(events))


async def got():
    task = (await send("tck-complete-task")).task
    found = await client(False).get_task(pb.GetTaskRequest(id=task.id), context=context)
    bare = await client(False).get_task(pb.GetTaskRequest(id=task.id, history_length=0), context=context)
    tell("got", same=found.id == task.id, state=state(found), history=len(found.history), bare=len(bare.history))


async def listed():
    task = (await send("tck-complete-task")).task
    asked = pb.ListTasksRequest(context_id=task.context_id, page_size=10)
    page = await client(False).list_tasks(asked, context=context)
    tell("listed", found=[found.id for found in page.tasks] == [task.id], total=page.total_size)


async def canceled():
    task = (await send("tck-input-required")).task
    tell("asked", state=state(task))
    after = await client(False).cancel_task(pb.CancelTaskRequest(id=task.id), context=context)
    tell("canceled", state=state(after), same=after.id == task.id)


async def answered():
    task = (await send("tck-input-required")).task
    after = (await send("tck-complete-task", task_id=task.id, context_id=task.context_id)).task
    tell("answered", state=state(after), same=after.id == task.id and after.context_id == task.context_id)


async def subscribed():
    task = (await send("test-resubscribe-message-id", at_once=True)).task
    events = await drain(client(True).subscribe(pb.SubscribeToTaskRequest(id=task.id), context=context))
    tell("subscribed", before=state(task), same=events[0].task.id == task.id, **told(events))


async def parts():
    kinds = {"text": "text", "raw": "bytes", "url": "url", "data": "data"}
    for kind in ("text", "file", "file-url", "data"):
        task = (await send(f"tck-artifact-{kind}")).task
        part = task.artifacts[0].parts[0]
        content = part.WhichOneof("content")
        value = getattr(part, content)
        value = value.decode() if content == "raw" else MessageToDict(value) if content == "data" else value
        tell(f"part_{kind}", kind=kinds[content], value=value, name=part.filename, media=part.media_type)
    given = [pb.Part(text="look"), pb.Part(raw=b"\x00\xff", filename="a.bin", media_type="application/octet-stream"),
             pb.Part(url="https://example.com/a.txt", media_type="text/plain")]
    given.append(pb.Part())
    given[-1].data.struct_value.update({"n": 1})
    task = (await send("tck-complete-task", parts=given)).task
    kept = (await client(False).get_task(pb.GetTaskRequest(id=task.id), context=context)).history[0].parts
    tell("kept", kinds=[kinds[part.WhichOneof("content")] for part in kept], bytes=list(kept[1].raw))


async def pushed():
    it, task = client(False), (await send("tck-input-required")).task
    config = pb.TaskPushNotificationConfig(task_id=task.id, id="mine", url="http://127.0.0.1:9/hook", token="t")
    made = await it.create_task_push_notification_config(config, context=context)
    ids = {"task_id": task.id, "id": made.id}
    found = await it.get_task_push_notification_config(pb.GetTaskPushNotificationConfigRequest(**ids), context=context)
    every = pb.ListTaskPushNotificationConfigsRequest(task_id=task.id)
    before = await it.list_task_push_notification_configs(every, context=context)
    gone = pb.DeleteTaskPushNotificationConfigRequest(**ids)
    await it.delete_task_push_notification_config(gone, context=context)
    after = await it.list_task_push_notification_configs(every, context=context)
    tell("pushed", id=made.id, url=found.url, before=len(before.configs), after=len(after.configs))


async def refused():
    it, done = client(True), (await send("tck-complete-task")).task
    no = "00000000-0000-4000-8000-000000000000"
    subscribe = lambda id: drain(it.subscribe(pb.SubscribeToTaskRequest(id=id), context=context))  # noqa: E731
    tell(
        "refused",
        get=await failure(it.get_task(pb.GetTaskRequest(id=no), context=context)),
        cancel=await failure(it.cancel_task(pb.CancelTaskRequest(id=no), context=context)),
        cancel_done=await failure(it.cancel_task(pb.CancelTaskRequest(id=done.id), context=context)),
        subscribe=await failure(subscribe(no)),
        subscribe_done=await failure(subscribe(done.id)),
        send=await failure(send("tck-complete-task", task_id=no)),
        send_done=await failure(send("tck-complete-task", task_id=done.id)),
    )


SCENARIOS = [card, sent, streamed, got, listed, canceled, answered, subscribed, parts, pushed, refused]


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
