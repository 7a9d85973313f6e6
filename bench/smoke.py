# SPDX-License-Identifier: Apache-2.0
"""The tests bench.smoke.*: run the benchmarks of a build folder at their smallest and look at what they print.

Whether the numbers are good is not asked: a test that judges times fails on a busy machine. Asked is that
every table is there with its rows and units, that each number is one, that --json parses and --help
explains, and that a wrong command line is refused in one line. What a benchmark lacks on this machine it has
to say in one line. Of bert only the options are looked at; the name inference (the test bench.bert) runs it, with one
layer. Usage: smoke.py BUILD_FOLDER/bench NAME, a benchmark or one of CHECKS
"""
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

# For each benchmark and table: the columns with a number (or an interval around one), and the rows' names.
INTERVAL, NUMBER = "interval", "number"
CREATORS = ({"default_per_s": INTERVAL, "cache_per_s": INTERVAL, "speedup": INTERVAL,
             "default_cpu_us": NUMBER, "cache_cpu_us": NUMBER, "cpu_speedup": INTERVAL},
            "creators", {1, 2, 8, 32})
MODES = {"yield", "lend", "own-tls", "klt"}  # of preemption
NOT_MEASURED = "not available"  # of a row: this build of the library, or this machine, does not have it
FLOOR_LIMITS = {f"{row}, {workers}" for workers in ("1 worker", "2 workers")
                for row in ("spawn + join, one at a time", "spawn + join by main, which called thrum_init",
                            "spawn + join by a kernel thread, no thrum_init",
                            "mutex + condition, there and back", "fib, a spawn", "skynet, a leaf")}
FLOOR_LIMITS |= {f"{row}, 1 worker" for row in ("spawn + join, 1000 at a time", "spawn + join by main, 1000 at a time",
                                                "yield, two threads", "spawn + join by main, mode klt")}
TBB_LIMITS = {f"{row}, 2 workers" for row in ("spawn + join, 1000 at a time", "spawn + join by main, 1000 at a time",
                                              "flat loop, tasks of 1 µs", "flat loop, tasks of 5 µs")}
EXPECTED = {
    "preload_cost": {
        "preload_cost": ({"wall_us": NUMBER, "cpu_us": NUMBER}, "program", {"nothing", "python3"}),
    },
    "create_join": {
        "create_join": ({"at_once": NUMBER, "wall_us": INTERVAL, "cpu_us": INTERVAL}, "variant",
                        {"default", "cache", "cache off"}),
        "create_join_cpu": ({"default_cpu_us": NUMBER, "cache_cpu_us": NUMBER, "cpu_ratio": INTERVAL,
                             "target": NUMBER}, "state", {"parked", "spinning"}),
    },
    "spawn": {"spawn": CREATORS},
    "stdasync": {"stdasync": CREATORS},
    "create_detach": {"create_detach": CREATORS},
    "async_programs": {
        "async_programs": ({"threads": NUMBER, "default_ms": INTERVAL, "cache_ms": INTERVAL,
                            "speedup": INTERVAL, "default_cpu_ms": NUMBER,
                            "cache_cpu_ms": NUMBER, "cpu_speedup": INTERVAL,
                            "process_speedup": INTERVAL}, "program",
                           {"alignment", "alignment in parts", "sparselu", "sort", "health", "floorplan",
                            "fft"}),
    },
    "alternatives": {
        "alternatives": ({"creators": NUMBER, "at_once": NUMBER, "per_s": INTERVAL, "cpu_us": INTERVAL}, "mode",
                         {"default", "reuse", "standby", "standby-helping", "stacks"}),
    },
    "idle_list": {
        "idle_list": ({"threads": NUMBER, "wall_ns": INTERVAL, "cpu_ns": INTERVAL}, "form",
                      {"lock", "lock-free", "half lock-free"}),
    },
    "policies": {
        "policies": ({"per_s": INTERVAL, "cpu_us": INTERVAL, "resident_kb": NUMBER}, "policy",
                     {"keep all", "at most 8", "for 100 ms", "for 1 s in all", "trimmed after 100 ms",
                      "until memory is short", "rest of 1 ms", "stack wiped"}),
    },
    "handover": {
        "handover": ({"creators": NUMBER, "cpu_us": INTERVAL, "switches": INTERVAL, "per_s": INTERVAL}, "form",
                     {"default", "cache", "floor, asleep", "floor, yielding"}),
    },
    "memory": {
        "memory": ({"default_kb": NUMBER, "cache_kb": NUMBER, "memory_ratio": INTERVAL, "default_tasks": NUMBER,
                    "cache_tasks": NUMBER, "tasks_ratio": INTERVAL}, "kind",
                   {"use malloc", "1 MiB of thread-locals", "joined at the end", "not joined", "detached"}),
    },
    "never_slower": {
        "never_slower": ({"threads": NUMBER, "job_ms": NUMBER, "rounds": NUMBER, "default_ms": NUMBER,
                          "wall_ratio": INTERVAL, "default_cpu_ms": NUMBER, "cpu_ratio": INTERVAL}, "how",
                         {"joined in order", "creator computes, joins at the end",
                          "detached, creator computes"}),
    },
    "openmp": {
        "openmp": ({"regions": NUMBER, "default_us": NUMBER, "cache_us": NUMBER, "wall_ratio": INTERVAL,
                    "default_cpu_us": NUMBER, "cache_cpu_us": NUMBER, "cpu_ratio": INTERVAL}, "mode",
                   {"teams of 2 and 8 in turns", "4, entered from new threads", "2 × 4 nested"}),
    },
    "server": {
        "server": ({"default": INTERVAL, "cache": INTERVAL, "ratio": INTERVAL}, "measure",
                   {"requests", "answer, median", "answer, 99th percentile", "server's CPU",
                    "server's kernel time"}),
    },
    "ult": {
        "ult": ({"cpu_1": INTERVAL, "wall_1": NUMBER, "cpu_2": NUMBER, "wall_2": INTERVAL}, "operation",
                {"spawn + join, 1000 at a time", "spawn + join, one at a time",
                 "spawn queued + join, 1000 at a time", "spawn + join, 50,000 at a time", "spawn detached",
                 "yield, two threads", "yield, two threads in two functions", "yield, four at different call depths",
                 "mutex + condition, there and back", "lock + unlock", "lock + unlock, four threads",
                 "fib, a spawn", "skynet, a leaf", "flat loop, tasks of 500 ns", "flat loop, tasks of 1 µs",
                 "flat loop, tasks of 5 µs", "flat loop, tasks of 1 µs, queued",
                 "flat loop, tasks of 5 µs, queued", "tasklet: spawn + join, 1000 at a time",
                 "tasklet: spawn + join, one at a time", "spawn + join, 1000 at a time, stack of the usual size",
                 "spawn + join, one at a time, stack of the usual size",
                 "spawn + join, 1000 at a time, stealing by levels",
                 "spawn + join by main, which called thrum_init", "spawn + join by main, 1000 at a time",
                 "spawn + join by a kernel thread, no thrum_init", "spawn + join by main, mode klt",
                 *(f"the same, {how}stack of {size}" for size in ("16 KiB", "1 MiB", "64 MiB")
                   for how in ("", "one at a time, "))}),
        "ult_other": ({"one": NUMBER, "two": NUMBER}, "operation",
                      {"resident memory of a blocked thread, of 2000", "init + fini, CPU", "init + fini, wall"}),
    },
    "stat_overhead": {
        "stat_overhead": ({"wall_ratio": INTERVAL, "cpu_ratio": INTERVAL}, "how",
                          {"as it comes", "without perf events", "without a CPU profile",
                           "beside 1000 threads that wait", "a Python program"}),
        "exact_wait": ({"added_us": INTERVAL}, "how", {"--exact"}),
    },
    "sleep": {
        "lateness": ({"median": INTERVAL, "p99": INTERVAL, "most": INTERVAL, "cpu": INTERVAL}, "what",
                     {f"{what}, {workers} workers" for workers in (2, 4)
                      for what in ("1024 for the same moment", "many for moments all the time")}
                     | {"1024 kernel threads for the same moment"}),
        "lateness_ratio": ({"ratio": INTERVAL, "limit": NUMBER}, "what", {"1024 for the same moment, 2 workers"}),
        "idle": ({}, "workers", {"1", "2", "4", "64"}),  # its numbers may be 0
    },
    "hpp": {
        "hpp": ({"cpu_c": NUMBER, "cpu_cpp": NUMBER, "cpu_ratio": INTERVAL, "wall_c": NUMBER, "wall_cpp": NUMBER,
                 "wall_ratio": INTERVAL}, "operation",
                {"spawn + join, thread", "spawn + join, branch", "the same with three words, thread",
                 "the same with three words, branch", "spawn + result, async", "spawn + join of 100, task_group",
                 "three words by way of the heap, thread", "result by way of the heap, async",
                 "result by way of the heap, co_await of async", "100 by way of the heap + latch, task_group",
                 "100 by way of the heap + latch, executor", "fib, branch", "halves down to 64 elements, for_each",
                 "halves down to 64 elements, reduce", "mutex + condition, there and back", "the first of two, when_any",
                 "lock + unlock", "channel of 64, a value"}),
        "waiters": ({"bytes": INTERVAL, "alone": INTERVAL, "many": INTERVAL}, "waiter",
                    {"thread, receive()", "task, on the stack of a thread", "task, co_await",
                     "thread, wait() for a condition", "task, co_await of a condition", "thread, at a barrier",
                     "task, co_await of a barrier"}),
    },
    "fairness": {
        "pairs": ({"alone": INTERVAL, "beside": INTERVAL, "kept": INTERVAL, "hogs": INTERVAL}, "what",
                  {f"{pairs} x {kind}" for pairs in (1, 50) for kind in ("semaphore", "channel", "mutex")}),
        "sleepers": ({"late": INTERVAL, "late_p99": INTERVAL}, "workers", {1, 2}),
    },
    "own_tls": {
        "own_tls": ({"value": INTERVAL}, "what",
                    {"spawn + join, the first", "spawn + join, one at a time", "spawn, many alive", "wake + join, many alive",
                     "resident memory of one of many", "kernel threads beyond the workers", "fib, a spawn", "fib, to lend",
                     "resident memory of a preempted thread, lend", "kernel threads of a preempted thread, lend"}),
    },
    "preempt_cost": {
        "preempt_cost": ({"p10": INTERVAL, "gap": INTERVAL, "p99": INTERVAL, "to_yield": INTERVAL, "to_kernel": INTERVAL,
                          "per_second": NUMBER}, "arm",
                         {*(f"thrum, {mode}" for mode in MODES), "kernel threads, 1:1",
                          "a timer's signal, no switch"}),
    },
    "preempt_forms": {
        "preempt_forms": ({"gap": INTERVAL, "count": NUMBER}, "form",
                          {"model: futex, pools of the workers', affinity where it changes",
                           "the same, sigsuspend and pthread_kill", "the same, one pool for all workers",
                           "the same, affinity always set", "the same, all three",
                           "model: next unit chosen in the handler, futex",
                           "the same with sigsuspend and pthread_kill", "the same with affinity always set",
                           "thrum, klt", "kernel threads, 1:1"}),
    },
    "preempt_overhead": {
        "several": ({"slice": NUMBER, "ratio": INTERVAL}, "mode", MODES | {"lend/monitor"}),
        "one": ({"slice": NUMBER, "ratio": INTERVAL}, "mode", MODES | {"lend/monitor"}),
        "alone": ({}, "mode", MODES | {"lend/monitor"}),  # its numbers may be below 0
    },
    "preempt_timers": {
        "preempt_timers": ({"threads": NUMBER, "median": INTERVAL, "p99": INTERVAL, "delivered": NUMBER}, "form",
                           {"naive", "staggered", "one to all", "chained"}),
    },
    "resets": {},  # its tables depend on what is at hand, see check_resets
}
MISSED = 3  # the exit status of --check
UNAVAILABLE = 77
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable  # that of plot.py
SMALLEST = {  # less than --quick, for a figure of each
    "preempt_cost": ("--rounds", "1", "--seconds", "0.02"),
    "preempt_forms": ("--rounds", "1", "--seconds", "0.05"),
    "preempt_overhead": ("--rounds", "1", "--length", "1"),
    "preempt_timers": ("--rounds", "1", "--seconds", "0.02", "--threads", "2"),
    "ult": ("--rounds", "1", "--length", "0.01", "--blocked", "100", "--armed", "--floor"),
}
MACHINE = {"cpu", "cores", "kernel", "libc", "load_before", "load_after"}
DISTANCES = {"line_ns_before", "line_ns_after"}  # not those in Python; 0 where there is one CPU


class Wrong(Exception):
    pass


class Unavailable(Exception):
    """The whole test cannot run here."""


FAULTS = (Wrong, AssertionError, OSError, ValueError, LookupError, TypeError, subprocess.TimeoutExpired)


def expect(condition, what):
    if not condition:
        raise Wrong(what)


def run(program, *options):
    return subprocess.run([program, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=250)


MAY_BE_NONE = {"kernel threads of a preempted thread, lend"}  # rows whose numbers may be 0


def expect_number(row, key):
    number = row.get(key)
    expect(isinstance(number, (int, float)) and math.isfinite(number), f"{key} is no number in {row}")


def check_table(result, key, columns, name, names):
    table = result["tables"].get(key)
    expect(table is not None, f"there is no table {key}")
    rows = [row for row in table["rows"] if NOT_MEASURED not in row.values()]
    expect(table["title"] and rows, f"table {key} has no title or no rows")
    for column, kind in columns.items():
        expect(column in table["units"], f"no unit for {column}")
        for row in rows:
            expect_number(row, column)
            none = not MAY_BE_NONE.isdisjoint(map(str, row.values()))
            expect(row[column] > 0 or (none and row[column] == 0), f"{column} is not above 0 in {row}")
            if kind == INTERVAL:
                expect_number(row, column + "_low")
                expect_number(row, column + "_high")
                expect(row[column + "_low"] <= row[column] <= row[column + "_high"], f"{column}: {row}")
    expect({row[name] for row in table["rows"]} == names, f"table {key} has the rows {table['rows']}")
    for row in table["rows"]:
        expect(set(row) >= set(table["units"]), f"a row lacks a column: {row}")


def check_preload_cost(result):
    rows = result["tables"]["preload_cost"]["rows"]
    preloaded = [row["preloaded"] for row in rows[:3]]
    expect(preloaded == ["none", "empty library", "libthrum-cache.so"], f"rows: {rows}")
    for row in rows:
        if row["preloaded"] != "none":
            for key in ("added_wall_us", "added_cpu_us"):
                expect_number(row, key)
    limits = [note for note in result["notes"] if "limit of 100 µs" in note]
    expect(len(limits) == len(rows) / 3, f"notes: {result['notes']}")


def check_resets(result):
    """Each of its two tables is there, or a note says what is missing for it."""
    tables, notes = result["tables"], " ".join(result["notes"])
    expect("system_calls" in tables or "strace" in notes, "neither system calls nor a note about strace")
    expect("rows" in tables or "THRUM_DEBUG" in notes, "neither rows nor a note about the library for them")
    if "system_calls" in tables:
        calls = {row["name"]: row for row in tables["system_calls"]["rows"]}
        expect(calls["total"]["default"] > 1, f"too few system calls: {calls}")
        makes = {name for name in calls if name in ("clone", "clone3")}
        expect(len(makes) == 1, f"no clone in {calls}")
        made = calls[makes.pop()]  # the point of the cache
        expect(made["default"] >= 0.99 and made["cache"] < 0.5, f"kernel threads made: {made}")
    if "rows" in tables:
        names = {row["row"] for row in tables["rows"]["rows"]}
        expect({"(nothing)", "static-tls", "stack"} <= names, f"rows: {names}")
        for row in tables["rows"]["rows"]:
            expect_number(row, "saved_cpu_us")


def check_policies(result):
    """What does not depend on the time: what is kept when there is no policy, or a limit."""
    idle = {row["policy"]: row["idle"] for row in result["tables"]["policies"]["rows"]}
    expect(idle["keep all"] >= 64 and 0 < idle["at most 8"] <= 8, f"idle afterwards: {idle}")


def check_limits_to_others(result):
    """Those of ult --floor."""
    with_tbb = any(row["beside"] == "oneTBB" for row in result["tables"]["ult_limits"]["rows"])
    check_table(result, "ult_limits", {"thrum": NUMBER, "other": NUMBER, "ratio": INTERVAL, "limit": NUMBER}, "operation",
                FLOOR_LIMITS | TBB_LIMITS if with_tbb else FLOOR_LIMITS)


def check_json(text, name):
    result = json.loads(text)
    expect(result["benchmark"] == name, f"it calls itself {result['benchmark']}")
    machine = result["machine"]
    expect(set(machine) in (MACHINE, MACHINE | DISTANCES) and all(machine[key] for key in MACHINE), f"machine: {machine}")
    expect(("library" in result) == (name not in ("idle_list", "sleep", "preempt_timers", "stat_overhead")),
           "a library where none is measured, or none")
    expect("library" not in result or result["library"]["build"] in ("release", "debug"), f"{result.get('library')}")
    expect(result["settings"], "no settings")
    if name == "openmp" and "not built" in " ".join(result["notes"]):
        return result
    for key, (columns, column, names) in EXPECTED[name].items():
        if not os.access("/usr/bin/python3", os.X_OK):
            names = names - {"python3", "a Python program"}
        check_table(result, key, columns, column, names)
    if name == "preload_cost":
        check_preload_cost(result)
    if name == "policies":
        check_policies(result)
    if name == "resets":
        check_resets(result)
    return result


def expect_missing(answer, name):
    lines = answer.stderr.splitlines()
    expect(len(lines) == 1 and lines[0].startswith(name + ": ") and " install " in lines[0],
           f"what is missing is not said in one line: {lines}")
    print(lines[0])


def check_text(text, name, result):
    """The tables are the JSON's, with the machine above them."""
    machine = result["machine"]
    for needle in (name, f"machine: {machine['cpu']}, {machine['cores']} core", machine["kernel"],
                   machine["libc"], "load average", *(["library: "] if "library" in result else [])):
        expect(needle in text, f"'{needle}' is not in the table")
    for table in result["tables"].values():
        expect(table["title"] in text, f"'{table['title']}' is not in the table")
        for unit in table["units"].values():
            expect(unit in text, f"the unit {unit} is not in the table")


def check_options(program, name):
    help_text = run(program, "--help")
    expect(help_text.returncode == 0, "--help fails")
    expect("--json" in help_text.stdout and "--full" in help_text.stdout, "--help is incomplete")
    wrongs = [["--no-such-option"], ["word"], ["--rounds"], ["--rounds", "x"], ["--rounds", "-1"],
              ["--quick=3"], ["--quick", "--full"], ["--library", "/no/such/library"], ["--save", "/no/such/folder/x"]]
    if name == "spawn":
        wrongs.append(["--creators", "1,,2"])
    if name == "preempt_overhead":
        wrongs.append(["--modes", "lend,none"])
    if name == "ult":
        wrongs.append(["--check"])  # of nothing
    for wrong in wrongs:
        answer = run(program, *wrong)
        lines = answer.stderr.splitlines()
        expect(answer.returncode != 0 and not answer.stdout, f"{wrong} is taken")
        expect(len(lines) == 1 and lines[0].startswith(name + ": "), f"{wrong} is refused with {lines}")


def measure(program, name):
    """Runs a benchmark once, at its smallest, and returns what it saved; None where it says that it cannot run here."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "saved.json")
        answer = run(program, "--quick", "--save", path)
        if answer.returncode == UNAVAILABLE:
            return expect_missing(answer, name)
        expect(answer.returncode == 0, f"status {answer.returncode}: {answer.stderr}")
        with open(path, encoding="utf-8") as file:
            result = check_json(file.read(), name)
    check_text(answer.stdout, name, result)
    return result


def check_benchmark(folder, name):
    program = os.path.join(folder, name)
    check_options(program, name)
    result = measure(program, name)
    if name == "hpp":
        check_tables(result)


def check_targets(folder, name):
    """--check ends with a status of its own exactly where a target is missed: next to nothing is asked, or far too much."""
    short = ("--rounds", "6", "--check", "--json")
    creators = (*short, "--seconds", "0.02", "--creators", "1", "--busy", "0", "--asked")
    jobs = (*short, "--run-ms", "1", "--longest", "0.02", "--limit")
    for benchmark, options, easy, hard in (("spawn", creators, "0.001", "1000000"),
                                           ("stdasync", creators, "0.001", "1000000"),
                                           ("never_slower", jobs, "1000000", "0.000001")):
        for asked, status, word in ((easy, 0, "kept"), (hard, MISSED, "MISSED")):
            answer = run(os.path.join(folder, benchmark), *options, asked)
            expect(answer.returncode == status, f"{benchmark} {asked}: status {answer.returncode}: {answer.stderr}")
            lines = answer.stderr.splitlines()
            expect(len(lines) == (1 if status else 0), f"{benchmark} {asked}: {lines}")
            row = json.loads(answer.stdout)["tables"][benchmark]["rows"][0]
            expect(word in row.values(), f"{benchmark} {asked}: {row}")
    overhead = ("--rounds", "6", "--check", "--json", "--steps", "1", "--waits", "1000", "--python", "/no/such/file")
    for limit, status in (("1000000", 0), ("0.000001", MISSED)):
        limits = ("--wall-limit", limit, "--cpu-limit", limit, "--wait-limit", limit)
        answer = run(os.path.join(folder, "stat_overhead"), *overhead, *limits)
        expect(answer.returncode == status, f"stat_overhead {limit}: status {answer.returncode}: {answer.stderr}")


def check_targets_of_preemption(folder, name):
    """Each limit by itself: with one of them out of reach --check fails, and in its rows and columns alone."""
    short = ("--check", "--json")
    for benchmark, options, limits, reachable, unreachable in (
            ("preempt_cost", ("--rounds", "6", "--seconds", "0.02"),
             {"--yield-limit": {("preempt_cost", f"thrum, {mode}", "yield_verdict") for mode in ("lend", "own-tls")},
              "--kernel-limit": {("preempt_cost", f"thrum, {mode}", "kernel_verdict") for mode in MODES}},
             "1000000", "0.000001"),
            ("preempt_overhead", ("--rounds", "10", "--length", "1", "--modes", "lend,lend/monitor"),
             {"--beyond-limit": {("several", "lend", "verdict")},
              "--alone-limit": {(table, mode, "verdict") for table in ("one", "alone") for mode in ("lend", "lend/monitor")}},
             "1000000", "-1000000"),
            ("sleep", ("--rounds", "6", "--seconds", "0.02", "--many", "100"),
             {"--late-limit": {("lateness_ratio", "1024 for the same moment, 2 workers", "verdict")}}, "1000000", "0.000001"),
            ("own_tls", ("--rounds", "6", "--spawns", "10", "--alive", "20", "--fib", "3", "--preempted", "2"),
             {"--first-limit": {("own_tls", "spawn + join, the first", "verdict")},
              "--warm-limit": {("own_tls", "spawn + join, one at a time", "verdict")},
              "--memory-limit": {("own_tls", "resident memory of one of many", "verdict")},
              "--tasks-limit": {("own_tls", "kernel threads beyond the workers", "verdict")},
              "--fib-limit": {("own_tls", "fib, to lend", "verdict")},
              "--preempted-limit": {("own_tls", "resident memory of a preempted thread, lend", "verdict")}},
             "1000000", "0.000001"),
            ("ult", (*SMALLEST["ult"], "--rounds", "12"),  # of two --rounds the last one counts
             {"--armed-limit": {("ult_armed", row, verdict) for verdict in ("verdict_cpu_1", "verdict_wall_2")
                                for row in (EXPECTED["ult"]["ult"][2] | {"resident bytes of a blocked thread"})
                                - {"spawn + join, 1000 at a time, stealing by levels",
                                   "spawn + join by a kernel thread, no thrum_init", "spawn + join by main, mode klt"}},
              "--floor-limits": {("ult_limits", row, "verdict") for row in FLOOR_LIMITS | TBB_LIMITS}},
             "1000000", "0.000001")):
        for missed in (None, *limits):
            asked = [word for limit in limits for word in (limit, unreachable if limit == missed else reachable)]
            answer = run(os.path.join(folder, benchmark), *options, *short, *asked)
            tables = json.loads(answer.stdout)["tables"]
            due = {cell for cell in limits.get(missed, ()) if cell[:2] in measured_rows(tables)}
            expect(answer.returncode == (MISSED if due else 0), f"{benchmark} {asked}: status {answer.returncode}: {answer.stderr}")
            found = missed_cells(tables)
            expect({cell[:3] for cell in found} == due, f"{benchmark} {asked}: {found}")
            expect(all(cell[3] in (None, 1000) for cell in found if cell[0] == "several"), f"{benchmark} {asked}: {found}")


def measured_rows(tables):
    """Table and row."""
    return {(table, next(iter(row.values()))) for table, one in tables.items() for row in one["rows"]
            if NOT_MEASURED not in row.values()}


def missed_cells(tables):
    """Table, row, column, and the slice where there is one."""
    return {(table, next(iter(row.values())), column, row.get("slice"))
            for table, one in tables.items() for row in one["rows"] for column, cell in row.items() if cell == "MISSED"}


TINY = {"run": "echo; echo '== build release'; echo 1 of 2 steps; sleep 0.3; echo '[2/2] Linking'; echo demonstrated", "test": "grep -q Changed src/one.c || sleep 0.2",
        "scripts/setup.sh": "[ $# = 1 ]"}


def check_test_times(folder, name):
    """Of a repository whose ./test takes no time: each limit by itself, and a command that fails."""
    if shutil.which("git") is None:
        raise Unavailable("git is not installed")
    program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "test_times.py")
    with tempfile.TemporaryDirectory() as tree:
        for path, text in TINY.items():
            write_program(os.path.join(tree, path), text)
        for path, text in ("src/one.c", ""), ("Makefile", "check:\n\t@grep -q Changed src/one.c\n"):
            os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
            with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                file.write(text)
        commit(tree)
        options = ("--check", "--json", "--repository", tree, "--change", "src/one.c", "--others", "1000")
        for missed in (None, "run", "test", "test_again", "check"):
            limits = ("--limit", f"{missed}=0.000001") if missed else ()
            answer = run(program, *options, *limits)
            expect(answer.returncode == (MISSED if missed else 0), f"{missed}: status {answer.returncode}: {answer.stderr}")
            rows = {row["name"]: row["verdict"] for row in json.loads(answer.stdout)["rows"]}
            run_s = next(row["wall_s"] for row in json.loads(answer.stdout)["rows"] if row["name"] == "run")
            expect(run_s >= 0.3, f"a line of progress is not the end of the build: {run_s}")
            expect(rows == {row: "MISSED" if row == missed else "kept" for row in ("run", "test", "test_again", "check")},
                   f"{missed}: {rows}")
        answer = run(program, *options, "--limit", "run=0.000001", "--others", "-1")
        expect(answer.returncode == 0 and '"undecided"' in answer.stdout, f"others: {answer.stdout}")
        write_program(os.path.join(tree, "test"), "echo broken; exit 5")
        commit(tree)
        answer = run(program, *options)
        expect(answer.returncode == 1 and "broken" in answer.stderr and "status 5" in answer.stderr, f"{answer}")
    for wrong in ("--limit", "check=soon"), ("--limit", "walk=1"), ("--repository", "/no/such/folder"), ("--wrong",):
        answer = run(program, *wrong)
        expect(answer.returncode in (1, 2) and "test_times: " in answer.stderr, f"{wrong}: {answer}")


POINT = {"threads": 4, "wall": {"median": 1.0}, "user": 1, "system": 0, "voluntary": 1, "run_delay": 0}
STAT = {"outcome": "scales", "verdict": "Threads help.", "findings": [], "points": [POINT], "warnings": [], "locks": [],
        "waits": [], "burns": [], "burns_one": [], "others": [], "threads_created": 4, "threads_counted": True,
        "doing": dict.fromkeys(("running", "runnable", "lock_wait", "input_output", "kernel", "join_wait", "idle_wait", "sleep"), 1)}


def check_stat_cases(folder, name):
    """With a `thrum stat` that says the same of each program: of what has a fault, of what has none, and of what cannot run."""
    program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "stat_cases.py")
    with tempfile.TemporaryDirectory() as tree, contextlib.ExitStack() as stack:
        stack.callback(os.chdir, os.getcwd())
        os.chdir(tree)
        for case in "hot_mutex", "scales":
            write_program(os.path.join(tree, "tests/programs/stat", case), "exit 0")
        options = ("--check", "--json", "--runs", "1", "--build", ".", "--cases", "^(hot_mutex|scales)$")
        for told, expected in (["hot-mutex"], ("rightly", "wrong")), ([], ("nothing", "rightly")), (["convoy"], ("wrong", "wrong")):
            findings = [{"rule": rule, "confidence": "high", "cause": "", "fix": "", "function": None, "file": None, "line": None,
                         "evidence": []} for rule in told]
            text = json.dumps(STAT | {"findings": findings})
            write_program(os.path.join(tree, "bin/thrum"),
                          f"while [ \"$1\" != -- ]; do shift; done; shift; \"$@\" || exit\ncat <<'END'\n{text}\nEND")
            answer = run(program, *options)
            expect(answer.returncode == (MISSED if "wrong" in expected else 0), f"{told}: {answer}")
            rows = {row["case"]: row for row in json.loads(answer.stdout)["rows"]}
            for case, verdict in zip(("hot_mutex", "scales"), expected):
                for where in "alone", "beside a hog":
                    expect(rows[case][where][verdict] == 1 and sum(rows[case][where].values()) == 1, f"{told}: {rows[case]}")
        os.remove(os.path.join(tree, "tests/programs/stat/scales"))
        answer = run(program, *options)
        expect(answer.returncode == 1 and "scales: FAILED" in answer.stderr, f"{answer}")
    for wrong in ("--runs", "0"), ("--cases", "no such case"), ("--wrong",):
        answer = run(program, *wrong)
        expect(answer.returncode == 2 and "stat_cases: " in answer.stderr, f"{wrong}: {answer}")


def write_program(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{text}\n")
    os.chmod(path, 0o755)


def commit(tree):
    for words in ("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"):
        expect(run("git", "-C", tree, *words).returncode == 0, f"git {words}")


def check_bert(folder, name):
    """All but inference itself, which is a test of its own."""
    program = os.path.join(folder, name)
    check_options(program, name)
    answer = run(program, "--venv", "/no/such/folder")
    expect(answer.returncode == UNAVAILABLE and not answer.stdout, f"status {answer.returncode}")
    expect_missing(answer, name)


def check_inference(folder, name):
    """The smallest inference, where PyTorch and transformers are installed; equal results are bert's own affair."""
    answer = run(os.path.join(folder, "bert"), "--quick", "--layers", "1", "--json")
    if answer.returncode == UNAVAILABLE:
        expect_missing(answer, "bert")
        raise Unavailable(answer.stderr.strip())
    expect(answer.returncode == 0, f"status {answer.returncode}: {answer.stderr}")
    result = json.loads(answer.stdout)
    columns = {"default_ms": INTERVAL, "cache_ms": INTERVAL, "ratio": INTERVAL, "default_cpu_ms": NUMBER,
               "cache_cpu_ms": NUMBER, "cpu_ratio": INTERVAL}
    check_table(result, "bert", columns, "mode", {"main thread", "a new thread"})
    reused = {row["mode"]: row["reused"] for row in result["tables"]["bert"]["rows"]}
    expect(reused["a new thread"] >= 1, f"reused: {reused}")


def check_armed(folder, name):
    """ult beside itself with preemption and with the event trace, and beside others by their limits."""
    answer = run(os.path.join(folder, "ult"), *SMALLEST["ult"], "--traced", "--json")
    expect(answer.returncode == 0, f"status {answer.returncode}: {answer.stderr}")
    ratios = {key: INTERVAL for key in ("cpu_1", "wall_1", "cpu_2", "wall_2")}
    operations = EXPECTED["ult"]["ult"][2] | {"resident bytes of a blocked thread", "init + fini"}
    for table in ("ult_armed", "ult_traced"):
        check_table(json.loads(answer.stdout), table, ratios, "operation", operations)
    if os.access(os.path.join(folder, "peers", "floor"), os.X_OK):  # where its assembly runs
        check_limits_to_others(json.loads(answer.stdout))


PLOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plot.py")


def check_figure(result):
    """Draws what a benchmark has measured, where matplotlib is installed."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "measured.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(result, file)
        answer = run(PYTHON, PLOT, path, os.path.join(scratch, "figure"))
        if answer.returncode != 0:
            return expect_missing(answer, "plot")
        for kind, start in (("svg", b"<?xml"), ("png", b"\x89PNG")):
            with open(os.path.join(scratch, "figure." + kind), "rb") as file:
                expect(file.read(len(start)) == start, f"the figure is no {kind}")


TABLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables.py")


def check_tables(result):
    """The tables for the documents: printed, and put into a document in the place of one that begins alike."""
    with tempfile.TemporaryDirectory() as scratch:
        path, document = os.path.join(scratch, "measured.json"), os.path.join(scratch, "document.md")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(result, file)
        printed = run(PYTHON, TABLES, path)
        expect(printed.returncode == 0 and not printed.stderr, f"status {printed.returncode}: {printed.stderr}")
        table = printed.stdout.split("\n\n")[1].rstrip("\n")
        lines = table.splitlines()
        expect(len(lines) > 3 and all(line.count("|") == lines[0].count("|") for line in lines), f"a table: {table}")
        before = f"Before\n\n{lines[0]}\n|---|\n| old |\n\nAfter\n"
        for text, expected in ((before, f"Before\n\n{table}\n\nAfter\n"), ("No table\n", None)):
            with open(document, "w", encoding="utf-8") as file:
                file.write(text)
            put = run(PYTHON, TABLES, path, document)
            expect((put.returncode == 0) == (expected is not None), f"status {put.returncode}: {put.stderr}")
            with open(document, encoding="utf-8") as file:
                expect(file.read() == (expected or text), "the document is not as it should be")


def count_failures(checks):
    """For the tests of the folders below: calls each, says what came of it, and returns how many failed."""
    failed = 0
    for name, check in checks.items():
        try:
            check()
            print(f"{name}: as expected", flush=True)
        except FAULTS as wrong:
            failed += 1
            print(f"{name}: {type(wrong).__name__}: {wrong}", flush=True)
    return failed


def check_preempt_plots(folder, name):
    """Makes the tables and draws the figures of docs/internals/preemption-cost.md."""
    with tempfile.TemporaryDirectory() as scratch:
        for benchmark, options in SMALLEST.items():
            measured, figure = os.path.join(scratch, "measured.json"), os.path.join(scratch, benchmark)
            with open(measured, "w", encoding="utf-8") as file:
                file.write(run(os.path.join(folder, benchmark), *options, "--json").stdout)
            with open(measured, encoding="utf-8") as file:
                check_tables(json.load(file))
            answer = run(PYTHON, PLOT, measured, figure)
            if answer.returncode != 0:
                return expect_missing(answer, "plot")
            expect(os.path.getsize(figure + ".svg") > 1000 and os.path.getsize(figure + ".png") > 1000, "no figure")


def check_plot(folder, name):
    """What spawn measures, and what is no measurement."""
    for wrong in ([], [os.devnull, "x"], ["/no/such/file", "x"]):
        answer = run(PYTHON, PLOT, *wrong)
        lines = answer.stderr.splitlines()
        expect(answer.returncode != 0 and len(lines) == 1 and lines[0].startswith("plot: "), lines)
    check_figure(json.loads(run(os.path.join(folder, "spawn"), "--quick", "--json").stdout))


CHECKS = {
    "test_times": check_test_times, "stat_cases": check_stat_cases, "targets": check_targets, "targets_of_preemption": check_targets_of_preemption,
    "bert": check_bert, "plot": check_plot,
    "armed": check_armed, "preempt_plots": check_preempt_plots, "inference": check_inference,
}


def main():
    folder, name = sys.argv[1:]
    if name not in CHECKS and name not in EXPECTED:
        print(f"smoke.py: no benchmark {name}; there are {', '.join([*EXPECTED, *CHECKS])}")
        return 2
    try:
        CHECKS.get(name, check_benchmark)(folder, name)
    except Unavailable as unavailable:
        print(f"skipped: {unavailable}")
        return UNAVAILABLE
    except FAULTS as wrong:
        print(f"{name}: {type(wrong).__name__}: {wrong}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
