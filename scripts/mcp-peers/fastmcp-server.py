#!/usr/bin/env python3
"""The peer of the MCP benchmark: the same tool with FastMCP and SQLite, with the same durability.

    fastmcp-server.py PORT DATABASE
"""

import sqlite3
import sys
import threading
import uuid
from datetime import datetime, timezone

from fastmcp import FastMCP

port, path = int(sys.argv[1]), sys.argv[2]
database = sqlite3.connect(path, check_same_thread=False)
database.execute("PRAGMA journal_mode = WAL")
database.execute("PRAGMA synchronous = FULL")
database.execute(
    "CREATE TABLE tasks (id TEXT PRIMARY KEY, title TEXT, description TEXT, priority TEXT, status TEXT, created_at TEXT)"
)
database.commit()
turn = threading.Lock()
server = FastMCP("tasks")


@server.tool
def add_task(title: str, description: str | None = None, priority: str = "medium") -> dict:
    """Adds one task to the user's list."""
    task = {
        "id": str(uuid.uuid4()),
        "title": title,
        "description": description,
        "priority": priority,
        "status": "pending",
        "created_at": datetime.now(timezone.utc).isoformat(),
    }
    with turn:
        database.execute("INSERT INTO tasks VALUES (:id, :title, :description, :priority, :status, :created_at)", task)
        database.commit()
    return {"success": True, "task_id": task["id"], "title": title, "status": "pending", "task": task}


server.run(
    transport="http", host="127.0.0.1", port=port, stateless_http=True, json_response=True, show_banner=False,
    log_level="error",
)
