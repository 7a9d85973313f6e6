# SPDX-License-Identifier: Apache-2.0
"""The test bench.casestudy: runs each experiment of the case study at its smallest, as bench.smoke does the other
benchmarks. Times are judged in one direction only: a thread that sleeps takes at least so long. Usage: smoke.py BUILD_FOLDER/bench
"""
import os
import sys
from functools import partial

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import smoke  # noqa: E402
from smoke import NUMBER, expect, expect_number, run  # noqa: E402

COLUMNS = {"size": NUMBER, "seconds": NUMBER, "cpu_ms": NUMBER, "cpu_percent": NUMBER}
LATE = {**COLUMNS, "late_ms": NUMBER, "latest_ms": NUMBER}
THREADS, ULTS, GO = "OS threads", "ULTs", "goroutines"
EXPECTED = {
    "sleep_threads": {"sleep_threads": (COLUMNS, {THREADS, GO})},
    "sleep_ults": {"sleep_ults": (LATE, {THREADS, ULTS, GO})},
    "sleep_ways": {"sleep_ways": (LATE, {THREADS, ULTS, GO})},
    "compute": {"compute_threads": (COLUMNS, {THREADS, ULTS, GO}), "compute_ults": (COLUMNS, {ULTS, GO})},
    "file_io": {"file_io": (COLUMNS, {THREADS, "ULTs that block their worker", "ULTs, thrum_blocking",
                                       "ULTs, thrum_blocking, eight at a time", GO})},
    "mixed": {"mixed": (COLUMNS, {THREADS, ULTS, GO})},
    "requests": {"requests": ({"size": NUMBER, "seconds": NUMBER, "per_second": NUMBER, "latency_ms": NUMBER,
                               "latency_99_ms": NUMBER, "cpu_us": NUMBER}, {ULTS, GO})},
}


def check_states(row):
    shares = [row[key] for key in ("running_percent", "sleeping_percent", "disk_percent")]
    if shares != ["-", "-", "-"]:  # it was over before anybody looked
        expect(all(0 <= share <= 100 for share in shares) and abs(sum(shares) - 100) < 0.1, f"states: {row}")
        expect_number(row, "threads")


def check_sleep(row, settings):
    least = row.get("ideal_seconds", settings.get("seconds", 0))
    if "milliseconds" in row:
        least = row["milliseconds"] / 1e3
    expect(row["seconds"] >= least, f"less than it sleeps, {least} s: {row}")


def check_folder(program, name):
    answer = run(program, "--quick", "--folder", "/no/such/folder")
    lines = answer.stderr.splitlines()
    expect(answer.returncode != 0 and len(lines) == 1 and lines[0].startswith(name + ": --folder"), f"{lines}")


def check_experiment(folder, name):
    program = os.path.join(folder, name)
    smoke.check_options(program, name)
    if name in ("file_io", "mixed"):
        check_folder(program, name)
    result = smoke.measure(program, name)
    go = os.access(os.path.join(folder, "casestudy/go"), os.X_OK)
    expect(go != ("golang-go" in " ".join(result["notes"])), f"Go, or a note that it is left out: {result['notes']}")
    for table in result["tables"].values():
        for row in table["rows"]:
            check_states(row)
            check_sleep(row, result["settings"])
    if name in ("compute", "requests"):  # which differ most
        smoke.check_figure(result)


def main():
    folder, checks = sys.argv[1], {}
    go = os.access(os.path.join(folder, "casestudy/go"), os.X_OK)
    for name, tables in EXPECTED.items():
        if name == "requests" and not os.access(os.path.join(folder, name), os.X_OK):
            continue  # no examples in this build
        smoke.EXPECTED[name] = {key: (columns, "crew", crews if go else crews - {GO})
                                for key, (columns, crews) in tables.items()}
        checks[name] = partial(check_experiment, folder, name)
    return 1 if smoke.count_failures(checks) else 0


if __name__ == "__main__":
    sys.exit(main())
