#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How often `thrum stat` judges the programs of tests/programs/stat rightly: each case several times alone, and several
times beside one process that computes (a hog). Prints a row for each case, with the number of runs in which

  rightly   the fault is named first, or a program without one is not accused
  nothing   a program with a fault is not accused
  wrong     a program without a fault is accused, or another fault than the program's is named

An accusation is a finding of medium or high confidence, other than what accuses nothing. A case that needs what this machine
lacks is left out, and named. Takes half a minute a run: some hours for all cases.

--check: status 3 if a case is judged wrongly beside the hog. Status 1 if a case cannot be run."""
import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile

from common import Failure, Parser

CASES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "tests", "programs", "stat")
ACCUSES_NOTHING = {"scales", "io-bound", "inconclusive"}
SURE = {"high", "medium"}
SKIPPED = 77  # check.py: it cannot be tried here
WHERE = "alone", "beside a hog"
VERDICTS = "rightly", "nothing", "wrong"


def all_cases():
    cases = {}
    for name in sorted(os.listdir(CASES)):
        if name.endswith(".json"):
            with open(os.path.join(CASES, name), encoding="utf-8") as file:
                cases |= json.load(file)["cases"]
    return cases


@contextlib.contextmanager
def hog(wanted):
    if not wanted:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def accusations(report):
    return [one["rule"] for one in report["findings"] if one["rule"] not in ACCUSES_NOTHING and one["confidence"] in SURE]


def judge(case, report):
    """By the rules alone: check.py judges places and numbers as well."""
    disease = set(case["first"]) - ACCUSES_NOTHING
    allowed = disease | set(case.get("also", [])) - ACCUSES_NOTHING
    told = accusations(report)
    if any(rule not in allowed for rule in told):
        return "wrong"
    if not disease:
        return "rightly"
    first = [one["rule"] for one in report["findings"] if one["rule"] not in ACCUSES_NOTHING][:1]
    return "rightly" if set(first) & disease else "nothing"


def run(name, case, options, scratch):
    """What became of one run; nothing where the case cannot be tried here."""
    kept = os.path.join(scratch, "report.json")
    with contextlib.suppress(FileNotFoundError):
        os.remove(kept)
    command = [sys.executable, os.path.join(CASES, "check.py"), "--thrum", os.path.join(options.build, "bin", "thrum"),
               "--bin", os.path.join(options.build, "tests", "programs", "stat"), "--keep", kept, name]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode == SKIPPED:
        return None
    try:
        with open(kept, encoding="utf-8") as file:
            report = json.load(file)
    except FileNotFoundError as error:
        raise Failure(f"{name}: {done.stdout.strip()}") from error
    verdict = judge(case, report)
    if verdict == "wrong":
        print(f"# {name}: {', '.join(accusations(report))}: {report['verdict']}", file=sys.stderr)
    return verdict


def measure(options, scratch):
    for name, case in all_cases().items():
        if not re.search(options.cases, name):
            continue
        row = {"case": name} | {where: dict.fromkeys(VERDICTS, 0) for where in WHERE}
        for _ in range(options.runs):
            for where in WHERE[:1] if "busy" in case else WHERE:  # such a case has its own hogs
                with hog(where != WHERE[0]):
                    verdict = run(name, case, options, scratch)
                if verdict is None:
                    break
                row[where][verdict] += 1
            else:
                continue
            row = None
            break
        if row is None:
            print(f"# {name}: cannot be tried here", file=sys.stderr)
            continue
        yield row


def line(name, row):
    return f"{name:24}" + "".join(f"{row[where][verdict]:10}" for where in WHERE for verdict in VERDICTS)


def main():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="status 3 if a case is judged wrongly beside the hog")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--runs", type=int, default=5, help="of each case, alone and beside the hog (5)")
    parser.add_argument("--cases", metavar="REGEX", default="", help="those whose names match (all)")
    parser.add_argument("--build", metavar="FOLDER", default="build/release", help="the build (build/release)")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)  # check.py runs the programs in a folder of its own
    if options.runs < 1:
        raise Failure("--runs: at least 1", 2)
    rows = []
    if not options.json:
        print(f"{'':24}" + "".join(f"{where:^30}" for where in WHERE))
        print(f"{'case':24}" + "".join(f"{verdict:>10}" for _ in WHERE for verdict in VERDICTS))
    with tempfile.TemporaryDirectory() as scratch:
        for row in measure(options, scratch):
            rows.append(row)
            if not options.json:
                print(line(row["case"], row), flush=True)
    if not rows:
        raise Failure(f"--cases {options.cases}: there is none", 2)
    total = {where: {verdict: sum(row[where][verdict] for row in rows) for verdict in VERDICTS} for where in WHERE}
    if options.json:
        print(json.dumps({"benchmark": "stat_cases", "cpus": os.cpu_count(), "rows": rows, "total": total}, indent=2))
    else:
        print(line("all", total))
    return 3 if options.check and total[WHERE[1]]["wrong"] > 0 else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"stat_cases: {failure}", file=sys.stderr)
        sys.exit(failure.code)
