// Drives an A2A agent with @a2a-js/sdk 0.3.14 and prints the same facts as client_v1.py.
//
//     node client_v03.mjs PEERS URL jsonrpc|rest|grpc all|SCENARIO [TOKEN]
//
// PEERS is where `setup` put the SDK. This SDK cannot list tasks.

import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [peers, url, binding, wanted, token] = process.argv.slice(2);
const find = createRequire(path.resolve(peers, "v03", "package.json"));
const load = (name) => import(pathToFileURL(find.resolve(name)).href);
const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } =
  await load("@a2a-js/sdk/client");
const { GrpcTransportFactory } = await load("@a2a-js/sdk/client/grpc");

const transport = {
  jsonrpc: () => new JsonRpcTransportFactory(),
  rest: () => new RestTransportFactory(),
  grpc: () => new GrpcTransportFactory(),
}[binding]();
const options = token ? { serviceParameters: { Authorization: `Bearer ${token}` } } : {};
const tell = (fact, what) => console.log(JSON.stringify({ fact, ...what }));
const text = (parts) => parts.map((part) => (part.kind === "text" ? part.text : "")).join("");

const factory = new ClientFactory({ transports: [transport], preferredTransports: [transport.protocolName] });
const card = await new DefaultAgentCardResolver().resolve(url);
const client = await factory.createFromAgentCard(card);

function request(kind, { parts = [{ kind: "text", text: "hello" }], atOnce = false, ...more } = {}) {
  const message = { kind: "message", messageId: `${kind}-${randomUUID()}`, role: "user", parts, ...more };
  return { message, configuration: { blocking: !atOnce, acceptedOutputModes: [] } };
}

const send = (kind, more) => client.sendMessage(request(kind, more), options);

async function drain(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

function told(events) {
  const names = { task: "task", message: "message", "status-update": "status", "artifact-update": "artifact" };
  const pieces = events.filter((event) => event.kind === "artifact-update");
  const updates = events.filter((event) => event.kind === "status-update");
  const last = events.at(-1);
  return {
    kinds: events.map((event) => names[event.kind]),
    states: events.filter((event) => event.status).map((event) => event.status.state),
    text: pieces.map((piece) => text(piece.artifact.parts)).join(""),
    artifacts: new Set(pieces.map((piece) => piece.artifact.artifactId)).size,
    final: updates.map((update) => update.final),
    ended: last.kind !== "status-update" || last.final,
  };
}

async function failure(act) {
  try {
    return `none: ${JSON.stringify(await act)}`;
  } catch (error) {
    return error.name === "Error" ? `${error.constructor.name}: ${error.message}` : error.name;
  }
}

function shown(part) {
  if (part.kind !== "file") return { kind: part.kind, value: part.text ?? part.data, name: "", media: "" };
  const { bytes, uri, name, mimeType } = part.file;
  const value = bytes === undefined ? uri : Buffer.from(bytes, "base64").toString();
  return { kind: bytes === undefined ? "url" : "bytes", value, name: name ?? "", media: mimeType ?? "" };
}

const scenarios = {
  async card() {
    const mine = [card.preferredTransport, ...(card.additionalInterfaces ?? []).map((it) => it.transport)];
    tell("card", {
      name: card.name, versions: mine.includes(transport.protocolName) ? [card.protocolVersion.slice(0, 3)] : [],
      skills: card.skills.length, streaming: card.capabilities.streaming, push: card.capabilities.pushNotifications,
    });
    if (card.supportsAuthenticatedExtendedCard) tell("extended", { name: (await client.getAgentCard(options)).name });
  },
  async sent() {
    let task = await send("tck-complete-task");
    tell("sent", { state: task.status.state, text: text(task.status.message.parts), has_context: !!task.contextId });
    const message = await send("tck-message-response");
    tell("message", { text: text(message.parts), role: message.role });
    task = await send("tck-reject-task");
    tell("rejected", { state: task.status.state });
  },
  async streamed() {
    const stream = async (kind) => told(await drain(client.sendMessageStream(request(kind), options)));
    tell("streamed", await stream("tck-stream-001"));
    tell("chunked", await stream("tck-stream-artifact-chunked"));
    tell("streamed_message", await stream("tck-message-response"));
  },
  async got() {
    const task = await send("tck-complete-task");
    const found = await client.getTask({ id: task.id }, options);
    tell("got", { same: found.id === task.id, state: found.status.state, history: (found.history ?? []).length });
  },
  async canceled() {
    const task = await send("tck-input-required");
    tell("asked", { state: task.status.state });
    const after = await client.cancelTask({ id: task.id }, options);
    tell("canceled", { state: after.status.state, same: after.id === task.id });
  },
  async answered() {
    const task = await send("tck-input-required");
    const after = await send("tck-complete-task", { taskId: task.id, contextId: task.contextId });
    tell("answered", { state: after.status.state, same: after.id === task.id && after.contextId === task.contextId });
  },
  async subscribed() {
    const task = await send("test-resubscribe-message-id", { atOnce: true });
    const events = await drain(client.resubscribeTask({ id: task.id }, options));
    tell("subscribed", { before: task.status.state, same: events[0].id === task.id, ...told(events) });
  },
  async parts() {
    for (const kind of ["text", "file", "file-url", "data"]) {
      const task = await send(`tck-artifact-${kind}`);
      tell(`part_${kind}`, shown(task.artifacts[0].parts[0]));
    }
    const bytes = Buffer.from([0, 255]).toString("base64");
    const parts = [
      { kind: "text", text: "look" },
      { kind: "file", file: { bytes, name: "a.bin", mimeType: "application/octet-stream" } },
      { kind: "file", file: { uri: "https://example.com/a.txt", mimeType: "text/plain" } },
      { kind: "data", data: { n: 1 } },
    ];
    const task = await send("tck-complete-task", { parts });
    const kept = (await client.getTask({ id: task.id }, options)).history[0].parts;
    tell("kept", { kinds: kept.map((it) => shown(it).kind), bytes: [...Buffer.from(kept[1].file.bytes, "base64")] });
  },
  async pushed() {
    const task = await send("tck-input-required");
    const config = { id: "mine", url: "http://127.0.0.1:9/hook", token: "t" };
    const asked = { taskId: task.id, pushNotificationConfig: config };
    const made = await client.setTaskPushNotificationConfig(asked, options);
    const ids = { id: task.id, pushNotificationConfigId: "mine" };
    const found = await client.getTaskPushNotificationConfig(ids, options);
    const before = (await client.listTaskPushNotificationConfig({ id: task.id }, options)).length;
    await client.deleteTaskPushNotificationConfig(ids, options);
    const after = (await client.listTaskPushNotificationConfig({ id: task.id }, options)).length;
    const { id } = made.pushNotificationConfig;
    tell("pushed", { id, url: found.pushNotificationConfig.url, before, after });
  },
  async refused() {
    const no = "00000000-0000-4000-8000-000000000000";
    const done = await send("tck-complete-task");
    tell("refused", {
      get: await failure(client.getTask({ id: no }, options)),
      cancel: await failure(client.cancelTask({ id: no }, options)),
      cancel_done: await failure(client.cancelTask({ id: done.id }, options)),
      subscribe: await failure(drain(client.resubscribeTask({ id: no }, options))),
      send: await failure(send("tck-complete-task", { taskId: no })),
      send_done: await failure(send("tck-complete-task", { taskId: done.id })),
    });
  },
};

for (const [scenario, act] of Object.entries(scenarios)) {
  if (!["all", scenario].includes(wanted)) continue;
  const late = new Promise((_, fail) => setTimeout(() => fail(new Error("it took too long")), 30_000).unref());
  await Promise.race([act(), late]).catch((error) => tell("failed", { scenario, error: `${error.name}: ${error.message}` }));
}
// Open connections are not needed any more.
process.exit(0);
