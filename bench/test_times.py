#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long a developer waits, on this machine: ./run until it has built, ./test in a fresh clone, and ./test and
make check after a change of one file of src/. Clones the last commit into a temporary folder; packages are installed
before the clock starts. Takes the sum of what it measures, some 25 minutes on two CPUs. ccache is turned off.

The limits are those of two CPUs that others leave idle. "cpu" is the CPU time of the command and its children,
"others" the CPUs that other processes used meanwhile, on average. A limit that is exceeded while others used more than
--others (a tenth of a CPU) is undecided.

--check: status 3 if a limit is exceeded. Status 1 if a command fails; its output is then printed."""
import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

from common import Failure, Parser

LIMITS = {"run": 100, "test": 720, "test_again": 420, "check": 90}  # seconds; the order in which they are measured
WHAT = {"run": "./run, fresh clone, until built", "test": "./test, fresh clone", "test_again": "./test after a change",
        "check": "make check after a change"}
PROGRESS = re.compile(r"\d+ of \d+ steps$")
REPOSITORY = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")


def limit(text):
    name, _, seconds = text.partition("=")
    if name not in LIMITS or not seconds.replace(".", "", 1).isdigit():
        raise Failure(f"--limit {text}: not NAME=SECONDS with a name of {', '.join(LIMITS)}", 2)
    return name, float(seconds)


def busy():
    """The CPU time of all processes, in seconds, since the machine started."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, *_ = map(int, file.readline().split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def own():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Stopwatch:
    def __init__(self):
        self.wall, self.own, self.busy = time.monotonic(), own(), busy()

    def row(self, name, wall=None):
        """wall: the seconds that count, if the command went on after them."""
        took = time.monotonic() - self.wall
        cpu = own() - self.own
        return {"name": name, "wall_s": took if wall is None else wall, "cpu_s": cpu,
                "others": max(0, busy() - self.busy - cpu) / took}


def environment():
    cleaned = {key: value for key, value in os.environ.items() if not key.startswith("THRUM_")}
    return {**cleaned, "CCACHE_DISABLE": "1", "DEMO_ROUNDS": "1", "DEMO_SECONDS": "1"}


def call(command, folder):
    """Its standard output, line by line, each with the time at which it came."""
    lines = []
    with subprocess.Popen(command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as child:
        for line in child.stdout:
            lines.append((time.monotonic(), line))
    if child.returncode != 0:
        sys.stderr.write("".join(line for _, line in lines))
        raise Failure(f"{' '.join(command)} failed with status {child.returncode}")
    return lines


def built(lines):
    """When ./run had built: scripts/lib.sh prints a heading, how far it is, and then ninja's last line."""
    heading = next((i for i, (_, line) in enumerate(lines) if line.startswith("== build")), None)
    after = [at for at, line in lines[heading + 1:] if line.strip() and not PROGRESS.match(line)] if heading is not None else []
    if not after:
        raise Failure("./run did not say when it had built")
    return after[0]


def clone(repository, folder):
    call(["git", "clone", "-q", "--no-hardlinks", repository, folder], "/")


def change(folder, name):
    try:
        with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
            file.write(f"\n/* Changed at {time.time():.0f}. */\n")
    except OSError as error:
        raise Failure(f"--change {name}: {error.strerror}", 2) from error


def measure(options, scratch):
    for_run, folder = os.path.join(scratch, "run"), os.path.join(scratch, "test")
    clone(options.repository, for_run)
    clone(options.repository, folder)
    if not os.path.exists(os.path.join(folder, options.change)):
        raise Failure(f"--change {options.change}: not in the last commit of {options.repository}", 2)
    for use in "run", "test":
        call(["scripts/setup.sh", use], folder)
    stopwatch = Stopwatch()
    yield stopwatch.row("run", built(call(["./run"], for_run)) - stopwatch.wall)
    stopwatch = Stopwatch()
    call(["./test"], folder)
    yield stopwatch.row("test")
    for name, command in ("test_again", ["./test"]), ("check", ["make", "check"]):
        change(folder, options.change)
        stopwatch = Stopwatch()
        call(command, folder)
        yield stopwatch.row(name)


def verdict(row, most_of_others):
    if row["wall_s"] <= row["limit_s"]:
        return "kept"
    return "undecided" if row["others"] > most_of_others else "MISSED"


def main():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="status 3 if a limit is exceeded")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--repository", metavar="FOLDER", default=REPOSITORY, help="what is cloned (this one)")
    parser.add_argument("--change", metavar="FILE", default="src/sync/mutex.c", help="what is changed (src/sync/mutex.c)")
    parser.add_argument("--limit", metavar="NAME=SECONDS", action="append", default=[],
                        help="another limit: " + ", ".join(f"{name}={seconds}" for name, seconds in LIMITS.items()))
    parser.add_argument("--others", metavar="CPUS", type=float, default=0.1, help="see above (0.1)")
    options = parser.parse_args()
    limits = {**LIMITS, **dict(map(limit, options.limit))}
    options.repository = os.path.realpath(options.repository)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)  # some tests run as an ordinary user
        for row in measure(options, scratch):
            row["limit_s"] = limits[row["name"]]
            row["verdict"] = verdict(row, options.others)
            rows.append(row)
            if not options.json:
                print(f"{WHAT[row['name']]:32} {row['wall_s']:7.1f} s of {row['limit_s']:g}, cpu {row['cpu_s']:.0f} s, "
                      f"others {row['others']:.2f}: {row['verdict']}", flush=True)
    if options.json:
        print(json.dumps({"benchmark": "test_times", "cpus": os.cpu_count(), "rows": rows}, indent=2))
    return 3 if options.check and any(row["verdict"] == "MISSED" for row in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"test_times: {failure}", file=sys.stderr)
        sys.exit(failure.code)
