# SPDX-License-Identifier: Apache-2.0
"""The test bench.tail: bench/tail_latency at its smallest, as bench.smoke does the other benchmarks. The program itself
refuses a server that has not answered each request exactly once. Of times one thing is asked that holds on any machine: no
request is answered in less than it computes. And what must stand still beside a request that never ends does so, while the
others answer all.
Usage: smoke.py BUILD_FOLDER/bench
"""
import os
import sys
from functools import partial

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import smoke  # noqa: E402
from smoke import INTERVAL, NUMBER, expect, run  # noqa: E402

COOPERATIVE, GO = "ULTs, cooperative", "goroutines"
PREEMPTIVE = {"ULTs, slices of 1 ms", "ULTs, slices of 100 us", "ULTs, short ones first"}
BESIDE_RUNAWAY = {COOPERATIVE, *PREEMPTIVE, GO, "OS threads"}
BY_LOAD = {*BESIDE_RUNAWAY, "ULTs, slices of 50 us", "OS threads, reused"}
LOADS = {20, 40, 60, 80}
SHORT, LONG = ("short_p50", "short_p99", "short_p999"), ("long_p50", "long_p99", "long_p999")
LEAST = 0.3  # of what the work takes: its speed was measured at another moment, when the CPU may have been slower


def check_latencies(row, settings):
    for keys, least in ((SHORT, settings["short"]), (LONG, settings["long"] / 1e3)):
        p50, p99, p999 = (row[key] for key in keys)
        expect(least * LEAST <= p50 <= p99 <= p999, f"not in order, or faster than the work, {least}: {row}")


def check_runaway(rows, settings, arms):
    cpus = settings["workers"]
    seen = {(row["arm"], row["workers"]) for row in rows}
    wanted = {(arm, cpus) for arm in arms} | {(arm, 1) for arm in arms if arm != "OS threads" and cpus > 1}
    expect(seen == wanted, f"rows: {seen}")
    for row in rows:
        if smoke.NOT_MEASURED in row.values():
            continue
        if row["arm"] == COOPERATIVE and row["workers"] == 1:
            expect(row["answered"] == 0 and row["short_p50"] == "never", f"it should stand still: {row}")
        else:
            expect(row["answered"] == 100, f"not all were answered: {row}")
            check_latencies(row, settings)


def check(folder):
    name = "tail_latency"
    program = os.path.join(folder, name)
    go = os.access(os.path.join(folder, "tail/go"), os.X_OK)
    numbers = {**{key: INTERVAL for key in (*SHORT, *LONG)}, "per_s": NUMBER, "cpu": NUMBER, "late": NUMBER}
    smoke.EXPECTED[name] = {"tail": (numbers, "arm", BY_LOAD if go else BY_LOAD - {GO})}
    smoke.check_options(program, name)
    result = smoke.measure(program, name)
    rows = result["tables"]["tail"]["rows"]
    for arm in smoke.EXPECTED[name]["tail"][2]:
        loads = [row["load"] for row in rows if row["arm"] == arm]
        expect(len(loads) == len(LOADS) and set(loads) == LOADS, f"{arm}: {loads}")
    for row in rows:
        if smoke.NOT_MEASURED not in row.values():
            check_latencies(row, result["settings"])
            expect(row["cpu"] >= LEAST, f"less CPU time than the work: {row}")
    check_runaway(result["tables"]["runaway"]["rows"], result["settings"], BESIDE_RUNAWAY if go else BESIDE_RUNAWAY - {GO})
    expect(go != ("golang-go" in " ".join(result["notes"])), f"Go, or a note that it is left out: {result['notes']}")
    smoke.check_figure(result)
    smoke.check_tables(result)


def main():
    return smoke.count_failures({"tail_latency": partial(check, sys.argv[1])})


if __name__ == "__main__":
    sys.exit(main())
