#!/usr/bin/env python3
"""An MCP server of the older era, made with Python's mcp 1.26: S3's tools, which take a user_id and answer JSON as text.

    legacy-server.py DIR stdio
    legacy-server.py DIR http PORT

DIR as for todo-server.py.
"""

import json
import os
import sys
import uuid
from pathlib import Path

from mcp.server.fastmcp import FastMCP

directory, transport, *rest = sys.argv[1:]
tasks_file, asked_file = Path(directory, "tasks.json"), Path(directory, "asked.jsonl")


def note(**what):
    with asked_file.open("a") as asked:
        asked.write(json.dumps(what) + "\n")


class Noted(FastMCP):
    """Writes down every call as it came."""

    async def call_tool(self, name, arguments):
        note(tool=name, arguments=arguments)
        return await super().call_tool(name, arguments)


server = Noted("tasks", host="127.0.0.1", port=int(rest[0]) if rest else 8000, log_level="ERROR")


def load():
    return json.loads(tasks_file.read_text()) if tasks_file.exists() else []


def save(tasks):
    fresh = tasks_file.with_suffix(".new")
    fresh.write_text(json.dumps(tasks))
    fresh.replace(tasks_file)


def done(task, **more):
    return json.dumps({"success": True, "task_id": task["id"], "title": task["title"], **more})


def failed(code, message):
    return json.dumps({"success": False, "error": {"code": code, "message": message}})


def change(user_id, task_id, act):
    tasks = load()
    task = next((task for task in tasks if task["id"] == task_id and task["user_id"] == user_id), None)
    if task is None:
        return failed("NOT_FOUND", "Task not found")
    act(tasks, task)
    save(tasks)
    return done(task)


@server.tool()
def add_task(user_id: str, title: str, description: str | None = None) -> str:
    """Creates a task."""
    if not 1 <= len(title) <= 200:
        return failed("VALIDATION_ERROR", "title must have 1 to 200 characters")
    task = {"id": str(uuid.uuid4()), "user_id": user_id, "title": title, "description": description, "completed": False}
    save([*load(), task])
    return done(task)


@server.tool()
def list_tasks(user_id: str) -> str:
    """Lists the user's tasks."""
    own = [{key: value for key, value in task.items() if key != "user_id"} for task in load()
           if task["user_id"] == user_id]
    return json.dumps({"success": True, "tasks": own, "count": len(own)})


@server.tool()
def complete_task(user_id: str, task_id: str) -> str:
    """Marks a task as done."""
    return change(user_id, task_id, lambda _, task: task.update(completed=True))


@server.tool()
def delete_task(user_id: str, task_id: str) -> str:
    """Deletes a task."""
    return change(user_id, task_id, lambda tasks, task: tasks.remove(task))


@server.tool()
def update_task(user_id: str, task_id: str, title: str | None = None, description: str | None = None) -> str:
    """Changes a task."""
    changes = {"title": title, "description": description}
    changes = {name: value for name, value in changes.items() if value is not None}
    if not changes:
        return failed("VALIDATION_ERROR", "say what to change")
    return change(user_id, task_id, lambda _, task: task.update(changes))


@server.tool()
def schedule_reminder(
    user_id: str, task_id: str, remind_at: str, repeat_interval_minutes: int | None = None, repeat_count: int | None = None
) -> str:
    """Reminds the user of a task."""
    return change(user_id, task_id, lambda _, task: task.update(remind_at=remind_at))


note(started=os.getpid())
server.run(transport="stdio" if transport == "stdio" else "streamable-http")
