#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: does `thrum stat` accuse a program that has no fault? Runs it on every example, on every program of tests/programs/src
# and, in one run, on every cured program of this folder. A finding of high or medium confidence is an accusation. Findings that
# accuse nothing are allowed, and so is what a program does on purpose (PURPOSE).
#
#   innocent.py --thrum THRUM --build FOLDER [--runs N] [PATTERN...]     FOLDER: of the build; PATTERN: of programs' names
#
# Exit code 0: none is accused; 1: one is, or a program is neither listed here nor excused; 77: none could be run.
import argparse
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parents[2]
ACCUSES_NOTHING = {"scales", "io-bound", "inconclusive", "children"}
SURE = {"high", "medium"}
SECONDS = 240  # for one `thrum stat`

# Under each program: the options of its runs, or these and its arguments. {} stands for the number of threads of a sweep.
ONCE, BY_WORKERS = [], ["--sweep", "1,2", "--threads-env", "THRUM_WORKERS"]
LIBTHRUM = [ONCE, BY_WORKERS]
EXAMPLES = {
    "birthday.c": [(["--sweep", "1,2,4"], ["{}", "1000000", "random_r"]), (ONCE, ["2", "3000000", "random_r"])],
    "cancellation.cpp": LIBTHRUM,
    "cholesky.c": [ONCE],  # asks for two workers itself
    "hello.c": LIBTHRUM,
    "insitu.c": [ONCE],
    "lambda.cpp": LIBTHRUM,
    "lottery.c": LIBTHRUM,
    "pipeline.c": LIBTHRUM,
    "quicksort.cpp": LIBTHRUM,
    "scheduler.cpp": [ONCE],
    "sieve.cpp": LIBTHRUM,
    "sort.c": LIBTHRUM,
    "argobots/analysis.c": [ONCE],
    "argobots/slices.c": [ONCE],
    "argobots/tasks.c": [(ONCE, ["4", "64", "sleep", "20"]), (["--sweep", "1,2"], ["{}", "64", "compute", "3000000"])],
}
PROGRAMS = {
    "alloc_churn.c": [ONCE],
    "cancel_storm.c": [ONCE],
    "drops_rights.c": [ONCE],
    "forks.c": [ONCE],
    "gdb_target.c": [ONCE],
    "openmp.c": [ONCE],
}
# What they do on purpose is a fault elsewhere.
PURPOSE = {
    "alloc_churn.c": {"thread-churn": "threads end all the time, so that the allocator's caches do"},
    "cancel_storm.c": {"thread-churn": "threads are cancelled by the thousand"},
    "openmp.c": {"thread-churn": "teams change their size", "nested": "teams have teams", "oversubscribed": "the same"},
}
# These have a fault, or cannot be run alone.
EXCUSED = {
    "client.c": "asks a server",
    "server.c": "is asked by a client",
    "argobots/sleep_client.cpp": "asks a server",
    "argobots/sleep_server.cpp": "is asked by a client",
    "requests.c": "one of its requests never ends, on purpose",
    "tasks.adb": "built by ada.sh",
    "threads.cs": "built by mono.sh",
}


def listed(folder, known):
    """Sources of that folder that are not in the list."""
    files = [path for path in folder.rglob("*") if path.suffix in {".c", ".cpp", ".adb", ".cs"}]
    names = {str(path.relative_to(folder)) for path in files}
    return sorted(names - set(known) - set(EXCUSED))


def examples(build):
    for source, runs in EXAMPLES.items():
        for one in runs:
            options, arguments = one if isinstance(one, tuple) else (one, [])
            yield source, options, [str(build / "examples" / pathlib.Path(source).stem), *arguments]


def programs(build):
    for source, runs in PROGRAMS.items():
        for options in runs:
            yield source, options, [str(build / "tests/programs" / pathlib.Path(source).stem)]


def cured(build):
    """Of the cases with an innocent verdict, those that are built here and take a number of threads. One run."""
    for path in sorted(HERE.glob("*.json")):
        for name, case in json.loads(path.read_text())["cases"].items():
            command = case.get("command", ["{bin}/" + name, "{}"])
            is_own = command[0].startswith("{bin}/") and "crate" not in case and "quota" not in case and "busy" not in case
            if is_own and set(case["first"]) <= ACCUSES_NOTHING and "--exact" not in case.get("options", []):
                words = [word.replace("{bin}", str(build / "tests/programs/stat")).replace("{}", "2") for word in command]
                yield name, ONCE, words


def report_of(thrum, options, command, runs):
    """The report; a text where there is none, which says why."""
    whole = [thrum, "stat", "--json", *options, *(["--runs", runs] if options else []), "--", *command]
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"} | {"LC_ALL": "C"}
    with tempfile.TemporaryDirectory(prefix="thrum-innocent.") as folder:
        try:
            done = subprocess.run(whole, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, errors="replace", timeout=SECONDS, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"not done after {SECONDS} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else f"exit code {done.returncode}, and no report: {done.stderr.strip()}"


def accusations(name, report):
    allowed = ACCUSES_NOTHING | set(PURPOSE.get(name, {}))
    if report["outcome"] == "stuck":
        yield f"called stuck: {report['verdict']}"
    for process in [report, *report["children"]]:
        for found in process["findings"]:
            if found["rule"] not in allowed and found["confidence"] in SURE:
                evidence = "; ".join(found["evidence"])
                yield f"{found['rule']}, {found['confidence']}: {found['cause']} ({evidence})"


def main():
    parser = argparse.ArgumentParser(description="fails where thrum stat accuses a program without a fault")
    parser.add_argument("--thrum", required=True, help="the command")
    parser.add_argument("--build", required=True, help="the folder of the build")
    parser.add_argument("--runs", default="2", help="bare runs of each number of threads")
    parser.add_argument("patterns", nargs="*", help="of programs' names")
    options = parser.parse_args()
    build, thrum = pathlib.Path(options.build).resolve(), os.path.abspath(options.thrum)
    failed = [f"{name} is not listed in {pathlib.Path(__file__).name}"
              for name in listed(SOURCES / "examples", EXAMPLES) + listed(HERE.parent / "src", PROGRAMS)]  # fmt: skip
    count = 0
    for name, how, command in [*examples(build), *programs(build), *cured(build)]:
        if options.patterns and not any(fnmatch.fnmatch(name, pattern) for pattern in options.patterns):
            continue
        what = " ".join([name, *how, *command[1:]])
        if not os.access(command[0], os.X_OK):
            print(f"{what}: not built here")
            continue
        count += 1
        report = report_of(thrum, how, command, options.runs)
        if isinstance(report, str):
            failed.append(f"{what}: {report}")
            print(failed[-1], flush=True)
            continue
        wrong = list(accusations(name, report))
        failed += [f"{what}: {line}" for line in wrong]
        rules = ", ".join(f"{found['rule']} ({found['confidence']})" for found in report["findings"]) or "nothing"
        print(f"{what}: {report['outcome']}: {rules}{'  ACCUSED' if wrong else ''}", flush=True)
    for line in failed:
        print("FAILED:", re.sub(r"\s+", " ", line))
    if count == 0 and not failed:
        print("skipped: no program is built here")
        sys.exit(77)
    sys.exit(1 if failed else 0)


main()
