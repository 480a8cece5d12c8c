"""All times of cron expressions in a stretch of time, by cronsim: JSON on stdin, JSON on stdout."""

import datetime
import json
import sys
import zoneinfo

from cronsim import CronSim

asked = json.load(sys.stdin)
answer = []
for expression, zone in asked["schedules"]:
    start = datetime.datetime.fromtimestamp(asked["from"], zoneinfo.ZoneInfo(zone))
    times = []
    for time in CronSim(expression, start):
        second = int(time.timestamp())
        if second > asked["until"]:
            break
        times.append(second)
    answer.append(times)
json.dump(answer, sys.stdout)
