#!/usr/bin/env python3
"""Checks event logs against the table of dlock-log(5): event_log.py FILE...

Each line is one JSON object of at most 4096 bytes, with the fields that the manual gives its event, each of its type.
Each run writes exactly one last event for each of its locks, and none after it.
"""
import collections
import json
import os
import re
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "man", "dlock-log.5")
NUMBER, TEXT, PARTY = (int,), (str,), (dict, type(None))
TYPES = {name: NUMBER for name in ("pid", "waited_ms", "held_ms", "lease_ms", "after_ms", "signal")}
TYPES |= {name: (int, type(None)) for name in ("fence", "slot", "place", "waiters", "left_ms", "exit_status")}
TYPES |= {name: TEXT for name in ("time", "event", "key", "backend", "run", "host", "user", "command", "error", "why")}
TYPES |= {"label": (str, type(None)), "outcome": (str, type(None)), "reason": (str, type(None)), "borrowed": (bool,),
          "holder": PARTY, "done_by": PARTY}
OUTCOMES = {None, "completed", "done", "busy", "lost", "unreachable", "denied", "max-hold", "signalled", "not-started", "error"}


def read_schema():
    """Of each event: the fields that it has, those that it may have, and whether it is the last one."""
    with open(PAGE, encoding="utf-8") as page:
        rows = re.findall(r"^\.It (?:Cm|Em) (\S+) Ta (last )?Ta ?(.*)$", page.read(), re.M)
    fields = collections.defaultdict(list)
    for event, _, names in rows:
        fields[event] += [name.strip() for name in names.split(",") if name.strip()]
    common = fields.pop("all")
    last = {event for event, is_last, _ in rows if is_last}
    return {event: ({name for name in names if name[0] != "["} | set(common),
                    {name.strip("[]") for name in names if name[0] == "["}, event in last)
            for event, names in fields.items()}


SCHEMA = read_schema()
faults = []


def check_line(text):
    """What is wrong with one line; the object, if it is one."""
    try:
        line = json.loads(text.decode("utf-8"))
        required, optional, _ = SCHEMA[line["event"]]
    except (ValueError, KeyError, TypeError) as error:
        return [f"{type(error).__name__} {error}"], None
    wrong = []
    if len(text) + 1 > 4096:
        wrong.append(f"{len(text) + 1} bytes")
    if not required <= set(line) <= required | optional:
        wrong.append(f"fields: {set(line) ^ required}")
    for name, value in line.items():
        types = TYPES.get(name, ())
        if not isinstance(value, types) or (isinstance(value, bool) and types != (bool,)):
            wrong.append(f"{name} is {value!r}")
        if name.endswith("_ms") and isinstance(value, int) and value < 0:
            wrong.append(f"{name} is negative")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.get("time", "")):
        wrong.append("time")
    if line.get("outcome") not in OUTCOMES:
        wrong.append(f"outcome {line['outcome']}")
    return wrong, line


def check_order(events, where):
    """The events of one run and lock."""
    last = [event for event, _ in events if SCHEMA[event][2]]
    is_left = any("lease_ms" in line for _, line in events)  # by acquire --ttl
    if len(last) > 1 or (len(last) == 0 and not is_left):
        faults.append(f"{where}: {len(last)} last events: {[event for event, _ in events]}")
    elif last and events[-1][0] != last[0]:
        faults.append(f"{where}: {events[-1][0]} after {last[0]}")
    granted = sum(event in ("acquired", "borrowed") for event, _ in events)
    is_killed = events and events[-1][1].get("reason") == "killed"  # perhaps before it could write the first one
    if last and not is_killed and granted != (last[0] in ("released", "lost")):
        faults.append(f"{where}: acquired {granted} times, and {last[0]}")


for path in sys.argv[1:]:
    with open(path, "rb") as log:
        content = log.read()
    runs = collections.defaultdict(list)
    if not content.endswith(b"\n"):
        faults.append(f"{path}: the last line has no end")
    for number, text in enumerate(content.split(b"\n")[:-1], 1):
        wrong, line = check_line(text)
        faults += [f"{path}:{number}: {fault}: {text.decode('utf-8', 'replace')}" for fault in wrong]
        if line:
            runs[line["run"], line["key"]].append((line["event"], line))
    for (run, key), events in runs.items():
        check_order(events, f"{path}: run {run}, key {key}")
sys.exit("\n".join(faults) or 0)
