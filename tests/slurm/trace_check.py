#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Checks trace.json of a run: trace_check.py FILE RANKS HOSTS AHEAD

All ranks are in the trace, and have the same number of steps and of sums over ranks.
Two spans of a line are nested, or do not overlap. No rank has the result of a sum
before every rank has begun this sum. This is so on a busy machine, too. For ranks of
different hosts it is so only if their clocks are aligned; the clocks may differ by the
clocks_differ_us of the file. The clocks of all hosts, except the host of rank 0, are
AHEAD seconds ahead. The file says by how much the clock of each rank was shifted. The
error of a shift is at most clocks_differ_us, and clocks_differ_us is less than 1 ms.
Prints the median difference between the times at which two ranks end the same sum.
"""
import collections
import json
import re
import statistics
import sys

GRID = 0.002  # us: begin and duration are rounded to 0.001
DOUBT_MAX = 1000  # us


def fail(text):
    sys.exit("FAIL: " + text)


def hosts_of(events):
    """{rank: host}"""
    names = {event["pid"]: event["args"]["name"] for event in events
             if event["name"] == "process_name"}
    return {rank: re.fullmatch("rank %d on (.*)" % rank, name).group(1)
            for rank, name in names.items()}


def shifts_of(events):
    """{rank: us}"""
    return {event["pid"]: float(re.fullmatch("clock shifted by (.*) us",
                                             event["args"]["labels"]).group(1))
            for event in events if event["name"] == "process_labels"}


def shifts_check(events, hosts, ahead, doubt):
    """The largest error of a shift, in us"""
    errors = [abs(shift + (0 if hosts[rank] == hosts[0] else 1e6 * ahead))
              for rank, shift in shifts_of(events).items()]
    if len(errors) != len(hosts) or max(errors) > doubt + GRID:
        fail("shifts are wrong by %s us, but should be by at most %s us"
             % (errors, doubt))
    if doubt >= DOUBT_MAX:
        fail("clocks differ by up to %.1f us" % doubt)
    return max(errors)


def nested(spans):
    lines = collections.defaultdict(list)
    for span in spans:
        lines[span["pid"], span["tid"]].append(
            (span["ts"], -span["ts"] - span["dur"], span["name"]))
    for line, pieces in lines.items():
        ends = []
        for begin, end, name in sorted(pieces):
            while ends and ends[-1] <= begin + GRID:
                ends.pop()
            if ends and -end > ends[-1] + GRID:
                fail("%s of line %s overlaps another span" % (name, line))
            ends.append(-end)
    return len(lines)


def sums_of(spans, ranks):
    """[[(begin, end) of each rank] of each sum over ranks]"""
    sums = []
    kinds = {(span["name"], span["tid"]) for span in spans
             if span["name"] in ("bucket", "tail")}
    for kind in kinds:
        by_rank = [sorted((span["ts"], span["ts"] + span["dur"]) for span in spans
                          if (span["name"], span["tid"]) == kind
                          and span["pid"] == rank) for rank in ranks]
        if len({len(found) for found in by_rank}) != 1:
            fail("%s: the ranks have %s sums" % (kind, [len(f) for f in by_rank]))
        sums += zip(*by_rank)
    return sums


def main(path, count, host_count, ahead):
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    doubt = trace["otherData"]["clocks_differ_us"]
    spans = [event for event in events if event["ph"] == "X"]
    hosts = hosts_of(events)
    if sorted(hosts) != list(range(count)) or len(set(hosts.values())) != host_count:
        fail("ranks and hosts: %s" % hosts)
    steps = collections.Counter(span["pid"] for span in spans
                                if span["name"] == "step")
    if sorted(steps) != list(range(count)) or len(set(steps.values())) != 1:
        fail("steps: %s" % steps)
    error = shifts_check(events, hosts, ahead, doubt)
    lines = nested(spans)
    sums = sums_of(spans, range(count))
    near, far = [], []
    for times in sums:
        for a, (_, end) in enumerate(times):
            for b, (begin, other_end) in enumerate(times):
                same = hosts[a] == hosts[b]
                if end < begin - GRID - (0 if same else doubt):
                    fail("rank %d ends a sum %.3f us before rank %d begins it"
                         % (a, begin - end, b))
                if a < b:
                    (near if same else far).append(abs(end - other_end))
    if not sums:
        fail("no sum over ranks")
    print("%d spans nest on %d lines of %d ranks; clocks of hosts differ by at "
          "most %.1f us, really by %.1f us;" % (len(spans), lines, count, doubt, error))
    print("ends of %d sums, median difference: %s us on a host, %s us across"
          % (len(sums), *("%.1f" % statistics.median(found) if found else "-"
                          for found in (near, far))))


if len(sys.argv) != 5:
    sys.exit(__doc__)
main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
