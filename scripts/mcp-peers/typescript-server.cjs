// An MCP server made with the TypeScript SDK: S0's four tools, which answer with text that is JSON.
//
//     node typescript-server.cjs MODULES DIR stdio
//     node typescript-server.cjs MODULES DIR http PORT
//
// MODULES is where `setup` put the SDK; DIR as for todo-server.py.

const { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { randomUUID } = require("node:crypto");
const path = require("node:path");

const [modules, directory, transport, port] = process.argv.slice(2);
const load_module = createRequire(path.resolve(modules, "package.json"));
const { McpServer } = load_module("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = load_module("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = load_module("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { createMcpExpressApp } = load_module("@modelcontextprotocol/sdk/server/express.js");
const { z } = load_module("zod");

const tasks_file = path.join(directory, "tasks.json");
const note = (what) => appendFileSync(path.join(directory, "asked.jsonl"), JSON.stringify(what) + "\n");
const load = () => (existsSync(tasks_file) ? JSON.parse(readFileSync(tasks_file)) : []);
const save = (tasks) => {
  writeFileSync(tasks_file + ".new", JSON.stringify(tasks));
  renameSync(tasks_file + ".new", tasks_file);
};
const said = (value) => ({ content: [{ type: "text", text: JSON.stringify(value) }] });
const failed = (text) => ({ content: [{ type: "text", text }], isError: true });

const priority = z.enum(["low", "medium", "high"]);
const attributes = {
  description: z.string().optional(),
  due_date: z.string().optional(),
  priority: priority.optional(),
  tags: z.array(z.string()).optional(),
};

function create_server() {
  const server = new McpServer({ name: "todos", version: "1.0.0" });
  const tool = (name, description, inputSchema, act) =>
    server.registerTool(name, { description, inputSchema }, (given) => {
      note({ tool: name, arguments: given });
      return act(given);
    });
  tool("create_todo", "Creates a todo.", { title: z.string(), ...attributes }, (given) => {
    const task = { id: randomUUID(), priority: "medium", ...given, completed: false };
    save([...load(), task]);
    return said({ todo: task });
  });
  const filters = { status: z.enum(["pending", "completed", "all"]).optional(), priority: priority.optional() };
  tool("list_todos", "Lists todos.", filters, ({ status = "all", priority }) => {
    const is_wanted = (task) =>
      (status === "all" || task.completed === (status === "completed")) && (!priority || task.priority === priority);
    return said({ todos: load().filter(is_wanted) });
  });
  const change = { todo_id: z.string(), title: z.string().optional(), ...attributes };
  change.status = z.enum(["pending", "completed"]).optional();
  tool("update_todo", "Changes a todo.", change, ({ todo_id, status, ...changes }) => {
    const tasks = load();
    const task = tasks.find((task) => task.id === todo_id);
    if (!task) return failed(`There is no todo ${todo_id}: not found`);
    Object.assign(task, changes, status ? { completed: status === "completed" } : {});
    save(tasks);
    return said({ todo: task });
  });
  const deletion = { todo_id: z.string(), confirmation: z.boolean() };
  tool("delete_todo", "Deletes a todo.", deletion, ({ todo_id, confirmation }) => {
    if (!confirmation) return failed("confirmation must be true");
    const tasks = load();
    if (!tasks.some((task) => task.id === todo_id)) return failed(`There is no todo ${todo_id}: not found`);
    save(tasks.filter((task) => task.id !== todo_id));
    return { content: [{ type: "text", text: "Deleted." }] };
  });
  return server;
}

async function main() {
  note({ started: process.pid });
  if (transport === "stdio") {
    await create_server().connect(new StdioServerTransport());
    return;
  }
  const app = createMcpExpressApp();
  app.post("/mcp", async (request, response) => {
    const server = create_server();
    const answer = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on("close", () => server.close());
    await server.connect(answer);
    await answer.handleRequest(request, response, request.body);
  });
  app.all("/mcp", (_, response) => response.sendStatus(405));
  app.listen(Number(port), "127.0.0.1");
}

main();
