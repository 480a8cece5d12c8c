"""What examples/lateness.rs measures, with APScheduler: python with_apscheduler.py [SCHEDULES] [SECONDS] [memory|sqlite]

Needs `pip install APScheduler==3.11.3 SQLAlchemy==2.1.8`. The jobs of `memory` are lost with the process; those of `sqlite` are
kept, as ours are. A job only notes when it was started: nothing is put into a queue, nothing is written down.
"""

import datetime
import sys
import tempfile
import time

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler

A_SECOND = 100
started = []


def note():
    started.append(time.time())


def memory(what):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(what))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
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
        scheduler.add_job(note, "interval", seconds=period, start_date=first)
    print(f"{memory('VmRSS'):8.1f} MB with {count} jobs ({kind}), made in {time.time() - began:.1f} s")
    if time.time() > start:
        sys.exit("they were not ready in time")
    scheduler.resume()
    time.sleep(start + 0.5 - time.time())
    started.clear()
    time.sleep(seconds)
    late = sorted((at % 1) * 1000 for at in list(started))
    print(f"{memory('VmRSS'):8.1f} MB at work, {memory('VmHWM'):.1f} MB at most")
    wanted = seconds * A_SECOND
    at = lambda share: late[int((len(late) - 1) * share)]
    print(f" started: {len(late)} runs of {wanted}, p50 {at(0.5):.1f} ms, p99 {at(0.99):.1f} ms, at most {at(1):.1f} ms late")
    scheduler.shutdown(wait=False)


if __name__ == "__main__":
    main()
