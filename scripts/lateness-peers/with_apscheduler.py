"""The measurement of crates/scheduler/examples/lateness.rs with APScheduler: with_apscheduler.py SCHEDULES SECONDS [memory|sqlite]

The jobs of `memory` are lost with the process; those of `sqlite` are kept, as ours are. A job only notes when it was started:
nothing is put into a queue, nothing is written down. `scripts/measure-lateness` runs it and reads its last line.
"""

import datetime
import json
import sys
import tempfile
import time

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler

A_SECOND = 100
started = []


def note(n):
    started.append((n, time.time()))


def memory(what):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(what))


def main():
    count, seconds = int(sys.argv[1]), int(sys.argv[2])
    kind = sys.argv[3] if len(sys.argv) > 3 else "memory"
    if kind == "sqlite":
        from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore

        folder = tempfile.TemporaryDirectory(dir=".")
        store = SQLAlchemyJobStore(f"sqlite:///{folder.name}/db.sqlite")
    else:
        store = MemoryJobStore()
    scheduler = BackgroundScheduler(
        jobstores={"default": store},
        executors={"default": ThreadPoolExecutor(20)},
        job_defaults={"misfire_grace_time": None},
        timezone=datetime.timezone.utc,
    )
    began = time.time()
    # One that is made takes a tenth of a millisecond in memory, and ten times that in a file.
    start = int(began) + 10 + count // (200 if kind == "sqlite" else 2000)
    period = max(count // A_SECOND, 1)
    scheduler.start(paused=True)
    for n in range(count):
        first = datetime.datetime.fromtimestamp(start + n // A_SECOND, datetime.timezone.utc)
        scheduler.add_job(note, "interval", args=[n], seconds=period, start_date=first)
    print(f"{memory('VmRSS'):8.1f} MB with {count} jobs ({kind}), made in {time.time() - began:.1f} s")
    if time.time() > start:
        sys.exit("they were not ready in time")
    scheduler.resume()
    time.sleep(start + 0.5 - time.time())
    before = time.process_time()
    time.sleep(seconds)
    cpu, resident, most = time.process_time() - before, memory("VmRSS"), memory("VmHWM")
    # So that the last ones may be late.
    time.sleep(1)
    # Those of the first second warm it up.
    counted = range(A_SECOND, min(A_SECOND * (seconds + 1), count))
    late = sorted((at - start - n // A_SECOND) * 1000 for n, at in list(started) if n in counted)
    at = lambda share: late[int((len(late) - 1) * share)] if late else 0
    figures = {"p50": at(0.5), "p99": at(0.99), "max": at(1), "memory": resident, "peak": most, "cpu": cpu / seconds}
    print(json.dumps({"schedules": count, "wanted": len(counted), "runs": len(late), **figures}), flush=True)
    scheduler.shutdown(wait=False)


if __name__ == "__main__":
    main()
