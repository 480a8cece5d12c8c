// Drives an A2A agent with @a2a-js/sdk 1.3.0 and prints the same facts as client_v1.py.
//
//     node client_v1.mjs PEERS URL jsonrpc|rest|grpc all|SCENARIO [TOKEN]
//
// PEERS is where `setup` put the SDK.

import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [peers, url, binding, wanted, token] = process.argv.slice(2);
const find = createRequire(path.resolve(peers, "v1", "package.json"));
const load = (name) => import(pathToFileURL(find.resolve(name)).href);
const sdk = await load("@a2a-js/sdk");
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
const words = Object.fromEntries(
  Object.entries(sdk.TaskState).map(([name, n]) => [n, name.replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-")]),
);
const state = (it) => words[it.status.state];
const text = (parts) => parts.map((part) => (part.content?.$case === "text" ? part.content.value : "")).join("");
const part = ($case, value, filename = "", mediaType = "") => ({
  content: { $case, value }, filename, mediaType, metadata: undefined,
});

const factory = new ClientFactory({ transports: [transport], preferredTransports: [transport.protocolName] });
const card = await new DefaultAgentCardResolver().resolve(url);
const client = await factory.createFromAgentCard(card);

function request(kind, { parts = [part("text", "hello")], taskId = "", contextId = "", atOnce = false } = {}) {
  const message = {
    messageId: `${kind}-${randomUUID()}`, role: sdk.Role.ROLE_USER, parts, taskId, contextId, metadata: undefined,
    extensions: [], referenceTaskIds: [],
  };
  const configuration = { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: atOnce };
  return { tenant: "", message, configuration, metadata: undefined };
}

const send = (kind, more) => client.sendMessage(request(kind, more), options);

async function drain(stream) {
  const events = [];
  for await (const event of stream) events.push(event.payload);
  return events;
}

function told(events) {
  const names = { task: "task", message: "message", statusUpdate: "status", artifactUpdate: "artifact" };
  const pieces = events.filter((event) => event.$case === "artifactUpdate").map((event) => event.value);
  return {
    kinds: events.map((event) => names[event.$case]),
    states: events.filter((event) => ["task", "statusUpdate"].includes(event.$case)).map((event) => state(event.value)),
    text: pieces.map((piece) => text(piece.artifact.parts)).join(""),
    artifacts: new Set(pieces.map((piece) => piece.artifact.artifactId)).size,
  };
}

async function failure(act) {
  try {
    return `none: ${JSON.stringify(await act)}`;
  } catch (error) {
    return error.name === "Error" ? `${error.constructor.name}: ${error.message}` : error.name;
  }
}

const scenarios = {
  async card() {
    const mine = card.supportedInterfaces.filter((it) => it.protocolBinding === transport.protocolName);
    tell("card", {
      name: card.name, versions: mine.map((it) => it.protocolVersion), skills: card.skills.length,
      streaming: card.capabilities.streaming, push: card.capabilities.pushNotifications,
    });
    if (card.capabilities.extendedAgentCard) tell("extended", { name: (await client.getAgentCard(options)).name });
  },
  async sent() {
    let task = await send("tck-complete-task");
    tell("sent", { state: state(task), text: text(task.status.message.parts), has_context: !!task.contextId });
    const message = await send("tck-message-response");
    tell("message", { text: text(message.parts), role: message.role === sdk.Role.ROLE_AGENT ? "agent" : "user" });
    task = await send("tck-reject-task");
    tell("rejected", { state: state(task) });
  },
  async streamed() {
    const stream = async (kind) => told(await drain(client.sendMessageStream(request(kind), options)));
    tell("streamed", await stream("tck-stream-001"));
    tell("chunked", await stream("tck-stream-artifact-chunked"));
    tell("streamed_message", await stream("tck-message-response"));
  },
  async got() {
    const task = await send("tck-complete-task");
    const found = await client.getTask({ tenant: "", id: task.id }, options);
    const bare = await client.getTask({ tenant: "", id: task.id, historyLength: 0 }, options);
    const same = found.id === task.id;
    tell("got", { same, state: state(found), history: found.history.length, bare: bare.history.length });
  },
  async listed() {
    const task = await send("tck-complete-task");
    const asked = { tenant: "", contextId: task.contextId, status: 0, pageSize: 10, pageToken: "" };
    const page = await client.listTasks(asked, options);
    tell("listed", { found: page.tasks.length === 1 && page.tasks[0].id === task.id, total: page.totalSize });
  },
  async canceled() {
    const task = await send("tck-input-required");
    tell("asked", { state: state(task) });
    const after = await client.cancelTask({ tenant: "", id: task.id, metadata: undefined }, options);
    tell("canceled", { state: state(after), same: after.id === task.id });
  },
  async answered() {
    const task = await send("tck-input-required");
    const after = await send("tck-complete-task", { taskId: task.id, contextId: task.contextId });
    tell("answered", { state: state(after), same: after.id === task.id && after.contextId === task.contextId });
  },
  async subscribed() {
    const task = await send("test-resubscribe-message-id", { atOnce: true });
    const events = await drain(client.resubscribeTask({ tenant: "", id: task.id }, options));
    tell("subscribed", { before: state(task), same: events[0].value.id === task.id, ...told(events) });
  },
  async parts() {
    const names = { text: "text", raw: "bytes", url: "url", data: "data" };
    for (const kind of ["text", "file", "file-url", "data"]) {
      const task = await send(`tck-artifact-${kind}`);
      const { content, filename, mediaType } = task.artifacts[0].parts[0];
      const value = content.$case === "raw" ? Buffer.from(content.value).toString() : content.value;
      tell(`part_${kind}`, { kind: names[content.$case], value, name: filename, media: mediaType });
    }
    const parts = [
      part("text", "look"), part("raw", Buffer.from([0, 255]), "a.bin", "application/octet-stream"),
      part("url", "https://example.com/a.txt", "", "text/plain"), part("data", { n: 1 }),
    ];
    const task = await send("tck-complete-task", { parts });
    const kept = (await client.getTask({ tenant: "", id: task.id }, options)).history[0].parts;
    tell("kept", { kinds: kept.map((it) => names[it.content.$case]), bytes: [...kept[1].content.value] });
  },
  async pushed() {
    const task = await send("tck-input-required");
    const config = { tenant: "", id: "mine", taskId: task.id, url: "http://127.0.0.1:9/hook", token: "t" };
    const made = await client.createTaskPushNotificationConfig({ ...config, authentication: undefined }, options);
    const ids = { tenant: "", taskId: task.id, id: made.id };
    const found = await client.getTaskPushNotificationConfig(ids, options);
    const all = { tenant: "", taskId: task.id, pageSize: 0, pageToken: "" };
    const before = (await client.listTaskPushNotificationConfig(all, options)).configs.length;
    await client.deleteTaskPushNotificationConfig(ids, options);
    const after = (await client.listTaskPushNotificationConfig(all, options)).configs.length;
    tell("pushed", { id: made.id, url: found.url, before, after });
  },
  async refused() {
    const no = "00000000-0000-4000-8000-000000000000";
    const done = await send("tck-complete-task");
    const cancel = (id) => client.cancelTask({ tenant: "", id, metadata: undefined }, options);
    const subscribe = (id) => drain(client.resubscribeTask({ tenant: "", id }, options));
    tell("refused", {
      get: await failure(client.getTask({ tenant: "", id: no }, options)),
      cancel: await failure(cancel(no)),
      cancel_done: await failure(cancel(done.id)),
      subscribe: await failure(subscribe(no)),
      subscribe_done: await failure(subscribe(done.id)),
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
