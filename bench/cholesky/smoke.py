# SPDX-License-Identifier: Apache-2.0
"""The test bench.cholesky: bench/cholesky at its smallest, as bench.smoke does the other benchmarks. Of the arms all but
the one that cooperates end, with LAPACK's result, which the benchmark compares itself; that one is killed at its limit. No
time is judged. Teams have more members than there are workers, so that none can end by luck. Usage: smoke.py
BUILD_FOLDER/bench
"""
import json
import os
import sys
from functools import partial

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import smoke  # noqa: E402
from smoke import INTERVAL, NUMBER, expect, run  # noqa: E402

NAME, STUCK = "cholesky", "ULTs, cooperative"
PREEMPTED = {"ULTs, lend, 0.1 ms", "gang, lend, 0.1 ms",
             *(f"{arm}, {slice_}" for arm in ("ULTs, lend", "ULTs, own-tls", "ULTs, klt", "gang, lend")
               for slice_ in ("1 ms", "10 ms"))}
ARMS = {"OS threads, flat", "ULTs, flat", "OS threads, nested", "ULTs, cooperative, barrier patched", *PREEMPTED}
GANG = "gang, cooperative"  # where teams fit
COLUMNS = {"size": NUMBER, "gflops": INTERVAL, "to_flat": INTERVAL, "to_nested": INTERVAL, "cpu_ms": NUMBER}
LIMIT = 0.5  # seconds
SMALLEST = ("--quick", "--tile", "32", "--limit", str(LIMIT), "--seconds", "0", "--json")
TOO_MANY = ("--least", "96", "--most", "96", "--workers", "2", "--outer", "2", "--members", "4")
FITTING = ("--least", "32", "--most", "64", "--workers", "2", "--outer", "2", "--members", "2")
ROUNDING = 1e-12


def measured(program, *options):
    answer = run(program, *SMALLEST, *options)
    expect(answer.returncode == 0 and not answer.stderr, f"status {answer.returncode}: {answer.stderr}")
    return json.loads(answer.stdout)


def check_stuck(rows):
    expect([row["size"] for row in rows] == [96], f"rows of {STUCK}: {rows}")
    for row in rows:
        expect(row["outcome"] == f"killed after {LIMIT} s" and row["gflops"] == "-", f"it has not been stuck: {row}")


def check_ended(row):
    if smoke.NOT_MEASURED in row.values():
        return
    expect(row["outcome"] == "ended", f"it has not ended: {row}")
    expect(0 <= row["error"] * 1e-16 < ROUNDING, f"error: {row}")
    # A team of four on two workers cannot meet unless a thread is preempted.
    expect((row["preemptions"] > 0) == (row["arm"] in PREEMPTED), f"preemptions: {row}")


def check_too_many(program):
    result = measured(program, *TOO_MANY)
    expect(result["benchmark"] == NAME and set(result["machine"]) == smoke.MACHINE | smoke.DISTANCES,
           f"machine: {result}")
    table = result["tables"][NAME]
    check_stuck([row for row in table["rows"] if row["arm"] == STUCK])
    table["rows"] = [row for row in table["rows"] if row["arm"] != STUCK]
    smoke.check_table(result, NAME, COLUMNS, "arm", ARMS)
    expect(len(table["rows"]) == len(ARMS), f"{len(table['rows'])} rows")
    for row in table["rows"]:
        check_ended(row)
    return result


def check_fitting(program):
    """Gangs that fit end without preemption."""
    result = measured(program, *FITTING)
    rows = [row for row in result["tables"][NAME]["rows"] if row["arm"] == GANG]
    expect([row["size"] for row in rows] == [32, 64], f"rows of {GANG}: {rows}")
    for row in rows:
        check_ended(row)
    return result


def check_wrong(program):
    for wrong in (("--least", "100"), ("--least", "256", "--most", "128"), ("--members", "1")):
        answer = run(program, *wrong)
        lines = answer.stderr.splitlines()
        expect(answer.returncode == 2 and len(lines) == 1 and lines[0].startswith(f"{NAME}: {wrong[0]}"),
               f"{wrong} is refused with {lines}")


def check(program):
    smoke.check_options(program, NAME)
    check_wrong(program)
    result = check_too_many(program)
    smoke.check_figure(result)
    smoke.check_tables(result)
    fitting = check_fitting(program)
    smoke.check_figure(fitting)
    smoke.check_tables(fitting)


def main():
    return smoke.count_failures({NAME: partial(check, os.path.join(sys.argv[1], NAME))})


if __name__ == "__main__":
    sys.exit(main())
