#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: does `thrum stat` say of a program what is known of it? Runs `thrum stat --json` and holds what it found against
# the case of that name in the expected verdicts, one of the .json files of this folder. What is judged: names of rules,
# functions and lines, shares and counts; never a time, for other work may run beside.
#
#   check.py --thrum THRUM --bin FOLDER CASE      [--keep FILE: the report goes there as well]
#                                                 [--runs N: bare runs of each number of threads, for what is not told by times]
#
# Exit code 0: as expected; 1: not, with what differs and what the report says; 77: the case cannot be tried here.
#
# An expected verdict:
#   command      what is run; {} stands for the number of threads, {bin}, {here} and {input} for the folder of the programs,
#                for this folder and for a file of `input` bytes of text. Default: {bin}/CASE {}
#   sweep        the numbers of threads; "16c" is sixteen times the usable CPUs. null: one run. Default: 1, 2, 4
#   options      of thrum stat, besides
#   environment  of the program, besides
#   needs        programs that must be installed, with the Debian package of each
#   crate        a folder here with a program of Rust's that cargo builds into {bin}/cargo, as far as it can be fetched
#   quota        so many CPUs are allowed by a control group, in which the command and its program run
#   cores        at least so many, with the reason: [4, "..."]
#   unless       files that must not be there, with the reason for each
#   without      what a library that the program loads must not contain: {library: text}; tells newer versions, which do
#                without the lock
#   interrupt    after so many seconds, as by Ctrl-C: for programs that do not end
#   busy         while it runs, this many processes for each CPU compute
#   fought       where the most threads made fewer voluntary switches than that, no thread was kept waiting for the lock, as on
#                machines whose CPUs hand a cache line over cheaply: then it has to be found that threads help, and the first finding may be that
#   first        the rules of which one has to be the first finding. Empty: there need not be any
#   also         the rules that may be found besides. Any other one is an accusation that is not true
#   hints        the rules that may be found with low confidence, though they are not true
#   cause        stands in the first finding's cause
#   fix          a regular expression that the first finding's advice matches; {cores} stands for their number
#   not_fix      one that it must not match: what would not help
#   function     is the first finding's function, or one of a list; so is its line, if there are marks: "HERE: rule" in the
#                source. null: no place is to blame, and none is named
#   outcomes     of which one has to be the report's. Default: all but "scales" if a disease is expected, else those of a
#                program that gains by threads. "no_difference" if the program's times differ that much on a quiet machine as well
#   lock         what the report's first lock has to be: kind, module or symbol
#   waits        of the lock waits, at least this share has the function in its stack
#   counted      of an exact run: of the lock waits that were counted, at least this share has the function in its stack
#   counted_most of an exact run: no more lock waits than so many
#   burns        of the CPU time, at least this share has the function in its stack, with the most threads and with the fewest
#   made         of an exact run: so many threads were made
#   says         stands in the verdict
#   evidence     a regular expression that a line of the first finding's evidence matches
#   warns        stands in a warning
#
# Where other work kept the CPUs, and only there, the outcome may be "inconclusive", or of one run a finding. Then what needs times to be seen may be
# missing, and so may a lock that hardly anybody had to wait for, since the threads did not run at once, and spinning that
# took no CPU time. Accusations that are not true, and what is seen without times, are judged all the same.
import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RULES = {
    "deadlock", "hidden-lock", "held-asleep", "priority", "hot-mutex", "convoy", "one-lock", "thread-churn", "oversubscribed", "busy-wait", "allocator",
    "affinity", "quota", "unequal", "grain", "nested", "polling", "children", "fixed-time", "false-sharing", "sequential", "coherency", "io-bound", "scales", "inconclusive",
    "true-sharing", "one-file", "address-space", "fork-copies", "herd",
}  # fmt: skip
UNTOLD = {"inconclusive", "no_difference"}  # the machine did not let it be told
OUTCOMES = {"stuck", "slower", "no_faster", "scales_some", "scales", "one_run", "too_short", *UNTOLD}
INNOCENT = {"scales", "io-bound", "inconclusive"}
NEED_TIMES = {"scales", "sequential", "coherency", "false-sharing", "oversubscribed", "polling", "address-space", "herd"}  # or CPUs for all threads
LOCKS = {"hidden-lock", "held-asleep", "hot-mutex", "convoy", "one-lock", "allocator"}
FEW_WAITS = 0.25  # of the time in which threads had something to do: in waits for locks
LITTLE_SPUN = 1.3  # CPU time with the most threads to that with the fewest
DISTURBED = 0.05  # of the CPUs, used by others
SECONDS = 240  # for one `thrum stat`


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


# --- what is expected ---------------------------------------------------------------------------------


def find_case(name):
    for path in sorted(HERE.glob("*.json")):
        group = json.loads(path.read_text())
        if name in group["cases"]:
            case = group["cases"][name]
            unknown = (set(case["first"]) | set(case.get("also", [])) | set(case.get("hints", []))) - RULES
            unknown |= set(case.get("outcomes", [])) - OUTCOMES
            if unknown:
                sys.exit(f"{path.name}, {name}: no such rule or outcome: {', '.join(sorted(unknown))}")
            return case | {"source": group.get("source")}
    sys.exit(f"no case '{name}' in {HERE}")


def marked_lines(source, rule):
    """The lines that are to blame, by the marks in the source; none: the line is not judged."""
    if source is None:
        return set()
    lines = (HERE / source).read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if f"HERE: {rule}" in line}


def is_function(found, expected):
    """The name without namespaces before it, template arguments, and what a compiler appends to it."""
    plain = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", found or ""))
    names = expected if isinstance(expected, list) else [expected]
    return any(re.search(rf"(^|::){re.escape(name)}($|[.(\[])", plain) is not None for name in names)


def name_of(expected):
    return " or ".join(expected) if isinstance(expected, list) else expected or "none"


# --- running ------------------------------------------------------------------------------------------


def library_of(program, name):
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    match = re.search(rf"{re.escape(name)}\S* => (\S+)", listed)
    return match and match[1]


def usable_cores():
    """Physical ones behind the CPUs that may be used, as `thrum stat` counts them."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text() if siblings.exists() else cpu)
    return len(cores)


def check_needs(case, program):
    least, why = case.get("cores", [1, ""])
    if usable_cores() < least:
        skip(f"there are fewer than {least} cores: {why}")
    for needed, package in case.get("needs", {}).items():
        if shutil.which(needed) is None:
            skip(f"{needed} is missing (Debian: {package})")
    for path, reason in case.get("unless", {}).items():
        if pathlib.Path(path).exists():
            skip(f"{path} is there: {reason}")
    if shutil.which(program) is None:
        sys.exit(f"FAILED: {program} is missing")
    for name, text in case.get("without", {}).items():
        path = library_of(program, name)
        if path is not None and text.encode() in pathlib.Path(path).read_bytes():
            skip(f"{path} is one that does without the lock")


def make_input(path, size):
    """Text that can be compressed and does not repeat itself within what a compressor remembers."""
    drawn = random.Random(1)
    words = ["".join(drawn.choices("abcdefghijklmnopqrstuvwxyz", k=drawn.randint(2, 10))) for _ in range(4000)]
    part = " ".join(drawn.choices(words, k=300000)).encode()
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(part[: size - file.tell()])


@contextlib.contextmanager
def busy(processes):
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()


def build_crate(name, target):
    """In a copy, since cargo writes beside the sources."""
    if shutil.which("cargo") is None:
        skip("cargo is missing")
    folder = pathlib.Path(target) / name
    shutil.copytree(HERE / name, folder, dirs_exist_ok=True)
    build = ["cargo", "build", "--release", "--quiet", "--manifest-path", str(folder / "Cargo.toml"), "--target-dir", target]
    fetch = ["cargo", "fetch", "--quiet", "--manifest-path", str(folder / "Cargo.toml")]
    if subprocess.run([*build, "--offline"], capture_output=True, check=False).returncode == 0:
        return
    if subprocess.run(fetch, capture_output=True, timeout=60, check=False).returncode != 0:
        skip("the crate could not be fetched")
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        sys.exit(f"FAILED: {name} could not be built\n{built.stderr}")


def write_group(folder, cpus):
    """The limit, of either version of control groups; false: they do not offer it here."""
    period = 100000
    files = {"cpu.max": f"{int(cpus * period)} {period}", "cpu.cfs_quota_us": str(int(cpus * period))}
    for name, text in files.items():
        if (folder / name).exists():
            (folder / name).write_text(text)
            return True
    return False


@contextlib.contextmanager
def limited(cpus):
    """The file of a control group that allows so many CPUs, to which a process is added by its number; None: no limit."""
    if cpus is None:
        yield None
        return
    roots = [pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")]
    root = next((root for root in roots if (root / "cgroup.procs").exists()), None)
    if root is None:
        skip("there are no control groups")
    folder = root / f"thrum-stat-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        skip(f"no control group can be made: {error.strerror}")
    try:
        if not write_group(folder, cpus):
            skip("control groups do not limit CPUs here")
        yield folder / "cgroup.procs"
    finally:
        for _ in range(100):  # until the last process of it is gone
            with contextlib.suppress(OSError):
                folder.rmdir()
            if not folder.exists():
                break
            time.sleep(0.1)


def sweep_text(case):
    cpus = len(os.sched_getaffinity(0))
    points = case.get("sweep", [1, 2, 4])
    return points and ",".join(str(int(p[:-1]) * cpus if isinstance(p, str) else p) for p in points)


def cpu_seconds():
    """What all CPUs, and what this process's children have used so far."""
    fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    used = (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")  # but for idle and waiting for I/O
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used, children.ru_utime + children.ru_stime


def run(thrum, case, command, folder, group):
    sweep = sweep_text(case)
    whole = [thrum, "stat", "--json", *(["--sweep", sweep] if sweep else []), *case.get("options", []), "--", *command]
    print("+", " ".join(whole))
    environment = os.environ | {"LC_ALL": "C", "TZ": "Europe/Berlin"} | case.get("environment", {})
    environment.pop("LD_PRELOAD", None)
    process = subprocess.Popen(
        whole, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True, preexec_fn=group and (lambda: group.write_text("0")),
    )  # fmt: skip
    began, (all_before, own_before) = time.monotonic(), cpu_seconds()
    try:
        if "interrupt" in case:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=case["interrupt"])
            os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        sys.exit(f"FAILED: not done after {SECONDS} s\n{errors}")
    all_after, own_after = cpu_seconds()
    if process.returncode != (-signal.SIGINT if "interrupt" in case else 0):
        sys.exit(f"FAILED: exit code {process.returncode}\n{errors}{output}")
    others = (all_after - all_before) - (own_after - own_before)
    return parse(output, errors) | {"used_by_others": others / (time.monotonic() - began) / os.cpu_count()}


def parse(output, errors):
    """The report: one line, which may come behind what the program printed."""
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    sys.exit(f"FAILED: no report\n{errors}{output}")


# --- judging ------------------------------------------------------------------------------------------


def is_hazy(case, report):
    """Other work kept the CPUs, as far as the report says so itself. Not if the program's own times differ so much."""
    if report["outcome"] == "no_difference" and "no_difference" in case.get("outcomes", []):
        return False
    busy = any(finding["rule"] == "inconclusive" and "busy" in finding["cause"] for finding in report["findings"])
    return report["outcome"] in UNTOLD or (report["outcome"] == "one_run" and busy)


def has_few_waits(report):
    doing = report["doing"]
    active = sum(doing[what] for what in ("running", "runnable", "lock_wait", "input_output", "kernel"))
    return doing["lock_wait"] < FEW_WAITS * active


def has_hardly_spun(report):
    points = report["points"]
    return len(points) > 1 and points[-1]["cpu"] < LITTLE_SPUN * points[0]["cpu"]


def may_be_missing(rules, report):
    """Of an inconclusive report: what these rules look at may not have happened."""
    if rules == {"busy-wait"}:
        return has_hardly_spun(report)
    return rules <= NEED_TIMES | {"inconclusive"} or (rules <= LOCKS and has_few_waits(report))


def judge_rules(case, report):
    hints = set(case.get("hints", []))
    told = [
        finding["rule"]
        for finding in report["findings"]
        if finding["rule"] != "inconclusive" and not (finding["rule"] in hints and finding["confidence"] == "low")
    ]
    hazy = is_hazy(case, report)
    first, allowed = set(case["first"]), set(case["first"]) | set(case.get("also", []))
    names = " or ".join(sorted(first))
    if first and not told and not (hazy and may_be_missing(first, report)):
        yield f"nothing is found; expected first: {names}"
    if first and told and told[0] not in (allowed if hazy else first):
        yield f"the first finding is {told[0]}; expected: {names}"
    for rule in told:
        if rule not in allowed:
            yield f"{rule} is found, which is not so"
    if first == {"inconclusive"} and not hazy:
        yield "not called inconclusive"
    if hazy and first != {"inconclusive"} and report["used_by_others"] < DISTURBED:
        yield f"called inconclusive, and others used {report['used_by_others']:.1%} of the CPUs"


def judge_place(case, report):
    blamed = [finding for finding in report["findings"] if finding["rule"] in case["first"]]
    if not blamed:
        return
    finding = blamed[0]
    if is_hazy(case, report) and finding["rule"] == "busy-wait" and finding["function"] is None:
        return  # told by switches alone: too little was spun to be seen in the CPU profile
    cause, function, line = finding["cause"], finding["function"], finding["line"]
    if "cause" in case and case["cause"] not in cause:
        yield f"the cause is '{cause}'; expected to name: {case['cause']}"
    if "fix" in case and not re.search(case["fix"].replace("{cores}", str(usable_cores())), finding["fix"]):
        yield f"the advice is '{finding['fix']}'; expected: {case['fix']}"
    if "not_fix" in case and re.search(case["not_fix"], finding["fix"]):
        yield f"the advice is '{finding['fix']}', which does not help"
    if "evidence" in case and not any(re.search(case["evidence"], line) for line in finding["evidence"]):
        yield f"the evidence is {finding['evidence']}; expected: {case['evidence']}"
    if "function" not in case:
        return
    wanted = case["function"]
    if not (function is None if wanted is None else is_function(function, wanted)):
        yield f"the function is {function}; expected: {name_of(wanted)}"
    lines = marked_lines(case["source"], finding["rule"])
    if lines:
        if finding["file"] != case["source"]:
            yield f"the file is {finding['file']}; expected: {case['source']}"
        elif line not in lines:
            yield f"the line is {line}; expected: {' or '.join(map(str, sorted(lines)))}"


def judge_outcome(case, report):
    outcomes = case.get("outcomes")
    if outcomes is None:
        outcomes = {"scales", "scales_some"} if set(case["first"]) <= INNOCENT else OUTCOMES - {"scales", "stuck", "too_short"}
    if report["outcome"] not in {*UNTOLD, *outcomes}:
        yield f"the outcome is {report['outcome']}; expected: {' or '.join(sorted(outcomes))}"
    if case.get("says", "") not in report["verdict"]:
        yield f"the verdict does not say: {case['says']}"
    if "warns" in case and not any(case["warns"] in warning for warning in report["warnings"]):
        yield f"no warning says: {case['warns']}"


def judge_waits(case, report):
    if is_hazy(case, report) and has_few_waits(report):
        return
    if "waits" in case:
        sites = report["waits"]
        found = [s for s in sites if any(is_function(frame["function"], case["function"]) for frame in s["stack"])]
        samples, total = sum(site["samples"] for site in found), sum(site["samples"] for site in sites)
        if total == 0 or samples < case["waits"] * total:
            where = name_of(case["function"])
            yield f"{samples} of {total} samples of lock waits are in {where}; expected: {case['waits']:.0%}"
    for key, value in case.get("lock", {}).items():
        lock = report["locks"][0]["lock"] if report["locks"] else {}
        if value not in (lock.get(key) or ""):
            yield f"the lock's {key} is {lock.get(key)}; expected: {value}"


def judge_counts(case, report):
    """Counts are the same on any machine: how busy it was does not matter."""
    if "--exact" not in case.get("options", []):
        return
    sites = report["waits"]
    total = sum(site["calls"] or 0 for site in sites)
    of_locks = sum(use["waits"] or 0 for use in report["locks"])
    futexes = sum(call["calls"] for call in report["system_calls"] if "futex FUTEX_WAIT" in call["name"])
    if not report["exact"]:
        yield "the waits were not counted"
    if of_locks != total:
        yield f"{total} waits are counted by place and {of_locks} by lock"
    if futexes < total:
        yield f"{total} waits are counted, and {futexes} calls of futex() to wait"
    function = case.get("function") or ""
    found = [s for s in sites if any(is_function(frame["function"], function) for frame in s["stack"])]
    counted = sum(site["calls"] or 0 for site in found)
    if "counted" in case and (total == 0 or counted < case["counted"] * total):
        where = name_of(case["function"])
        yield f"{counted} of {total} waits that were counted are in {where}; expected: {case['counted']:.0%}"
    if "made" in case and (report["threads_created"] != case["made"] or not report["threads_counted"]):
        yield f"{report['threads_created']} threads were made; expected: {case['made']}"
    if total > case.get("counted_most", total):
        yield f"{total} waits were counted; expected: no more than {case['counted_most']}"


def judge_burns(case, report):
    for which in ("burns", "burns_one") if "burns" in case else ():
        found = [s for s in report[which] if any(is_function(f["function"], case["function"]) for f in s["stack"])]
        share = sum(site["share"] for site in found)
        if share < case["burns"]:
            yield f"{share:.0%} of {which} are in {name_of(case['function'])}; expected: {case['burns']:.0%}"


def stack_text(site):
    names = [frame["function"] or frame["module"] or "?" for frame in site["stack"][:6]]
    return f"  {site['share']:6.1%} {site['samples']:6}  {' <- '.join(names)}"


def print_report(report):
    print(f"outcome: {report['outcome']}: {report['verdict']}")
    for point in report["points"]:
        point = collections.defaultdict(float, {key: value or 0 for key, value in point.items() if key != "wall"},
                                        wall=point["wall"]["median"])  # fmt: skip
        print("  {threads} threads: wall {wall:.3f} user {user:.3f} system {system:.3f} voluntary {voluntary:.0f}"
              " run delay {run_delay:.3f}".format_map(point))  # fmt: skip
    for finding in report["findings"]:
        place = f"{finding['function']} ({finding['file']}:{finding['line']})"
        print(f"finding: {finding['rule']}, {finding['confidence']}: {finding['cause']} | {finding['fix']} | {place}")
        for line in finding["evidence"]:
            print(f"  {line}")
    for title in ("waits", "burns", "burns_one"):
        print(f"{title}:", *map(stack_text, report[title][:5]), sep="\n")
    print("locks:", *(f"  {use['share']:.1%} {use['lock']['text']}" for use in report["locks"][:3]), sep="\n")
    print(f"doing: {report['doing']}; others used {report['used_by_others']:.0%} of the CPUs")
    for line in report["warnings"]:
        print(f"warning: {line}")


def main():
    parser = argparse.ArgumentParser(description="holds what thrum stat finds against an expected verdict")
    parser.add_argument("--thrum", required=True, help="the command")
    parser.add_argument("--bin", required=True, help="the folder of the programs that are made here")
    parser.add_argument("--keep", help="a file for the report")
    parser.add_argument("--runs", help="bare runs of each number of threads")
    parser.add_argument("case")
    options = parser.parse_args()
    case = find_case(options.case)
    if options.runs and sweep_text(case):
        case["options"] = ["--runs", options.runs, *case.get("options", [])]
    with tempfile.TemporaryDirectory(prefix="thrum-stat.") as folder:
        places = {"{bin}": options.bin, "{here}": str(HERE), "{input}": f"{folder}/input"}
        command = case.get("command", ["{bin}/" + options.case, "{}"])
        for name, place in places.items():
            command = [word.replace(name, place) for word in command]
        if "crate" in case:
            build_crate(case["crate"], os.path.join(os.path.abspath(options.bin), "cargo"))
        check_needs(case, command[0])
        if "input" in case:
            make_input(places["{input}"], case["input"])
        with busy(case.get("busy", 0) * len(os.sched_getaffinity(0))), limited(case.get("quota")) as group:
            report = run(os.path.abspath(options.thrum), case, command, folder, group)
    if options.keep:
        pathlib.Path(options.keep).write_text(json.dumps(report, indent=1))
    if report["points"][-1]["voluntary"] < case.get("fought", 0):
        print("not fought for here")
        case = {"first": ["scales", *case["first"]], "outcomes": ["scales", "scales_some"]}
    judges = (judge_rules, judge_place, judge_outcome, judge_waits, judge_counts, judge_burns)
    wrong = [line for judge in judges for line in judge(case, report)]
    for line in wrong:
        print(f"FAILED: {line}")
    if is_hazy(case, report):
        print("judged in part: the machine was busy")
    print_report(report)
    sys.exit(1 if wrong else 0)


main()
