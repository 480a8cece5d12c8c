#!/usr/bin/env python3
"""An MCP server of the current era, made with FastMCP: S0's four tools and some that are no tasks.

    todo-server.py DIR stdio
    todo-server.py DIR http PORT

DIR holds its tasks (tasks.json) and what it was asked (asked.jsonl, one call a line), so that both outlive the process.
"""

import asyncio
import json
import os
import sys
import uuid
from datetime import date, timedelta
from pathlib import Path
from typing import Literal

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_http_headers
from fastmcp.server.middleware import Middleware
from pydantic import BaseModel

directory, transport, *rest = sys.argv[1:]
tasks_file, asked_file = Path(directory, "tasks.json"), Path(directory, "asked.jsonl")


def note(**what):
    with asked_file.open("a") as asked:
        asked.write(json.dumps(what) + "\n")


class Notes(Middleware):
    """Writes down every call as it came."""

    async def on_call_tool(self, context, call_next):
        headers = get_http_headers(include={"authorization", "x-team"}) if transport == "http" else {}
        sent = {name: headers[name] for name in ("authorization", "x-team") if name in headers}
        note(tool=context.message.name, arguments=context.message.arguments or {}, **({"headers": sent} if sent else {}))
        return await call_next(context)


server = FastMCP("todos", middleware=[Notes()])
Priority = Literal["low", "medium", "high"]


def load():
    return json.loads(tasks_file.read_text()) if tasks_file.exists() else []


def save(tasks):
    fresh = tasks_file.with_suffix(".new")
    fresh.write_text(json.dumps(tasks))
    fresh.replace(tasks_file)


def find(tasks, todo_id):
    task = next((task for task in tasks if task["id"] == todo_id), None)
    if task is None:
        raise ToolError(f"Todo {todo_id} not found")
    return task


@server.tool
def create_todo(
    title: str,
    description: str | None = None,
    due_date: str | None = None,
    priority: Priority = "medium",
    tags: list[str] | None = None,
) -> dict:
    """Creates a todo."""
    task = {"id": str(uuid.uuid4()), "title": title, "description": description, "due_date": due_date,
            "priority": priority, "status": "pending", "tags": tags or []}
    save([*load(), task])
    return task


@server.tool
def list_todos(
    status: Literal["pending", "completed", "all"] = "all",
    priority: Priority | None = None,
    due_date_filter: str | None = None,
    tags: list[str] | None = None,
) -> list[dict]:
    """Lists todos."""

    today = date.today()
    days = {None: None, "today": [today], "this_week": [today + timedelta(n) for n in range(7)]}
    days = days.get(due_date_filter, [due_date_filter])

    def wanted(task):
        due = (task["due_date"] or "")[:10]
        return (
            status in ("all", task["status"])
            and priority in (None, task["priority"])
            and (days is None or due in map(str, days))
            and set(tags or []) <= set(task["tags"])
        )

    return [task for task in load() if wanted(task)]


@server.tool
def update_todo(
    todo_id: str,
    title: str | None = None,
    description: str | None = None,
    due_date: str | None = None,
    priority: Priority | None = None,
    status: Literal["pending", "completed"] | None = None,
    tags: list[str] | None = None,
) -> dict:
    """Changes a todo."""
    tasks = load()
    task = find(tasks, todo_id)
    changes = {"title": title, "description": description, "due_date": due_date, "priority": priority,
               "status": status, "tags": tags}
    task.update({name: value for name, value in changes.items() if value is not None})
    save(tasks)
    return task


@server.tool(annotations={"destructiveHint": True})
def delete_todo(todo_id: str, confirmation: bool) -> dict:
    """Deletes a todo. The confirmation must be true."""
    if not confirmation:
        raise ToolError("confirmation must be true")
    tasks = load()
    task = find(tasks, todo_id)
    save([other for other in tasks if other is not task])
    return {"deleted": True, "todo_id": todo_id}


@server.tool
def send_note(to: str, text: str) -> str:
    """Sends somebody a note."""
    return f"Sent to {to}: {text}"


@server.tool(annotations={"readOnlyHint": True})
def count_todos() -> int:
    """Counts the todos."""
    return len(load())


class Address(BaseModel):
    street: str
    zip: str | None = None


class Contact(BaseModel):
    name: str
    kind: Literal["friend", "colleague"] | None = None
    home: Address
    work: Address | None = None


@server.tool
def save_contact(contact: Contact, overwrite: bool | None = None) -> str:
    """Keeps an address."""
    return f"Saved {contact.name} of {contact.home.street}"


@server.tool
async def ponder(seconds: float) -> str:
    """Thinks for a while."""
    await asyncio.sleep(seconds)
    return "42"


@server.tool
def repeat_secrets() -> dict:
    """Says what nobody should: what it was entrusted with."""
    return {"token": os.environ.get("TODO_TOKEN"), **get_http_headers(include={"authorization", "x-team"})}


@server.tool
def fall_over() -> str:
    """Dies."""
    os._exit(3)


note(started=os.getpid(), token=os.environ.get("TODO_TOKEN"))
print(f"todos are served, the token is {os.environ.get('TODO_TOKEN')}", file=sys.stderr)
if transport == "stdio":
    server.run(transport="stdio", show_banner=False, log_level="error")
else:
    server.run(transport="http", host="127.0.0.1", port=int(rest[0]), show_banner=False, log_level="error")
