#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/studies/cholesky.md, docs/studies/insitu.md and docs/studies/tail-latency.md, those of docs/reference/benchmarks.md that set the same
beside the paper's, and those of docs/internals/preemption-cost.md and docs/guide/cpp.md, as Markdown, from what the benchmarks say with --json:

    build/release/bench/cholesky --json >build/cholesky.json
    bench/tables.py build/cholesky.json                                          # prints them
    bench/tables.py build/cholesky.json docs/studies/cholesky.md docs/reference/benchmarks.md      # puts them in the place of the old ones

In a document a table is found by its first line. "The paper" is Shiina, Iwasaki, Taura and Balaji, PPoPP 2021, whose
slides have curves for these experiments, and sentences, but no numbers.
"""
import json
import sys

from common import Failure
from series import chosen, measured, names


# --- cells ------------------------------------------------------------------------------------------------------

def number(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def interval(row, key, size=1, unit=""):
    """In units of that size, with the interval of its median, which one measurement has not; or a word."""
    if not isinstance(row[key], (int, float)):
        return row[key]
    low, high = row[key + "_low"], row[key + "_high"]
    return number(row[key] / size) + unit + (f" [{number(low / size)}, {number(high / size)}]" if low < high else "")


def duration(row, key, us=1):
    """The same, of values in units of so many microseconds, in the unit that fits."""
    if not isinstance(row[key], (int, float)):
        return row[key]
    name, size = next(each for each in (("s", 1e6), ("ms", 1e3), ("µs", 1)) if row[key] * us >= each[1] or each[1] == 1)
    return interval(row, key, size / us, " " + name)


def markdown(heads, rows, words=1):
    """The first `words` columns are words."""
    columns = len(heads)
    lines = [heads, ["---"] * words + ["---:"] * (columns - words), *rows]
    assert all(len(line) == columns for line in lines), lines
    return "\n".join(f"|{'|'.join(line)}|" if line is lines[1] else f"| {' | '.join(line)} |" for line in lines) + "\n"


def pivot(rows, title, by, unit, cell):
    """A row for each arm, a column for each value of `by`."""
    values = names(rows, by)
    heads = [title, f"{values[0]:g} {unit}", *(f"{value:g}" for value in values[1:])]
    return markdown(heads, [[arm, *(cell(row) for value in values for row in chosen(rows, **{"arm": arm, by: value}))]
                            for arm in names(rows, "arm")])


# --- Cholesky ---------------------------------------------------------------------------------------------------

def cholesky_arms(rows, members):
    sizes = names(rows, "size")
    heads = [f"teams of {members:g}", f"GFLOP/s: {sizes[0]:g}", *(f"{size:g}" for size in sizes[1:]),
             "to nested OS threads", "CPU time, ms", "preemptions"]
    lines = []
    for arm in names(rows, "arm"):
        series = chosen(rows, arm=arm)
        speeds = [row["outcome"] if row["gflops"] == "-" else number(row["gflops"]) for row in series]
        last = series[-1]
        if last["outcome"] == "ended":
            speeds[-1] = interval(last, "gflops")
            more = [interval(last, "to_nested"), *(number(last[key]) for key in ("cpu_ms", "preemptions"))]
        else:
            more = [""] * 3
        lines.append([arm, *speeds, *more])
    return markdown(heads, lines)


def cholesky_beside(rows, members):
    size = rows[-1]["size"]

    def ratio(arm):
        row, = chosen(rows, arm=arm, size=size)
        return interval(row, "to_nested") if row["outcome"] == "ended" else row["outcome"]
    stuck = [f"{row['size']:g}: {row['outcome']}" for row in chosen(rows, arm="ULTs, cooperative")]
    lines = [["user-level threads that cooperate", "deadlock", "; ".join(stuck)],
             ["the same, the library's barrier patched; to nested OS threads (1:1)", "a curve",
              ratio("ULTs, cooperative, barrier patched")],
             *([f"preempted after {slice_} (KLT-switching), the library as it is; to nested OS threads",
                "\"outperforms\"",
                ratio(f"ULTs, klt, {slice_}")] for slice_ in ("1 ms", "10 ms")),
             ["the same with *lend*, after 1 ms", "not there", ratio("ULTs, lend, 1 ms")],
             ["OS threads, inner parallelism off; to nested OS threads", "a curve", ratio("OS threads, flat")],
             ["largest relative error of a result, to LAPACK's", "not said",
              f"{max(row['error'] for row in measured(rows, 'error')) * 1e-16:.1g}"]]
    return markdown([f"Cholesky, {size:g} rows, teams of {members:g}", "the paper (56 cores, MKL)", "here"], lines, words=3)


def cholesky(result):
    rows, members = result["tables"]["cholesky"]["rows"], result["settings"]["members"]
    return [cholesky_arms(rows, members), cholesky_beside(rows, members)]


# --- in situ ----------------------------------------------------------------------------------------------------

def insitu_baselines(result, name):
    rows = result["tables"]["baselines"]["rows"]
    return markdown([f"{name}, without an analysis", "time, ms", "CPU time, ms", "to ULTs", "late, µs"],
                    [[row["arm"], interval(row, "simulated"), number(row["cpu"]), interval(row, "to_ults"),
                      number(row["late"])] for row in rows])


def insitu_beside(rows, name):
    steps = names(rows, "interval")[:2][-1]

    def overhead(*arms):
        found = [chosen(rows, arm=arm, interval=steps)[0] for arm in arms]
        return "; ".join(f"{row['arm']}: {interval(row, 'overhead')}" for row in found)
    return markdown([f"{name}, overhead, %, every {steps:g} steps", "the paper (LAMMPS, 56 cores)", "here"], [
        ["kernel threads look", "\"large overheads\"", overhead("pthreads", "pthreads, nice 19", "pthreads, SCHED_IDLE")],
        ["user-level threads look, with preemption and priorities", "better", overhead("ULTs, both")],
        ["with priorities alone", "\"hard to support\"", overhead("ULTs, priorities")],
        ["with neither", "not said", overhead("ULTs")]], words=3)


def insitu(result):
    leaves_out = any(note.endswith("free the snapshot is left out.") for note in result["notes"])
    name = result["benchmark"] + (", leaving out" if leaves_out else "")
    rows = measured(result["tables"]["insitu"]["rows"], "overhead")

    def by_interval(title, cell):
        return pivot(rows, f"{name}: {title}", "interval", "steps", cell)
    tables = [insitu_baselines(result, name),
              by_interval("overhead, %", lambda row: interval(row, "overhead")),
              by_interval("until all has been looked at, %", lambda row: interval(row, "overhead_all")),
              by_interval("total time, CPU time, ms", lambda row: f"{number(row['all'])}, {number(row['cpu'])}"),
              by_interval("out of an exchange, late, µs", lambda row: number(row["late"]))]
    if not leaves_out:
        tables.append(by_interval("looked at by the end, %; waits", lambda row: f"{row['by_end']:.0f}; {row['waits']:g}"))
        tables.append(insitu_beside(rows, name))
    else:
        tables.append(by_interval("looked at, %; left out", lambda row: f"{row['looked_at']:.0f}; {row['left_out']:g}"))
    return tables


# --- tail latency -----------------------------------------------------------------------------------------------

LATENCIES = {"short_p50": "short, median", "short_p99": "short, p99", "short_p999": "short, p99.9",
             "long_p50": "long, median", "long_p99": "long, p99"}


def latency(row, key):
    return duration(row, key, 1000 if key.startswith("long") else 1)


def tail_runaway(rows):
    return markdown(["workers", "beside one that never ends", "answered, %", *LATENCIES.values()],
                    [[f"{row['workers']:g}", row["arm"], number(row["answered"]),
                      *(latency(row, key) for key in LATENCIES)] for row in measured(rows, "answered")], words=2)


def tail(result):
    rows = measured(result["tables"]["tail"]["rows"], "short_p50")
    tables = [pivot(rows, title, "load", "%", lambda row, key=key: latency(row, key)) for key, title in LATENCIES.items()]
    tables.append(pivot(rows, "CPU time, to the work", "load", "%", lambda row: f"{row['cpu']:.2f}"))
    tables.append(tail_runaway(result["tables"]["runaway"]["rows"]))
    others = sorted(row["others"] for row in rows)
    tables.append(markdown(["sent late, 99 %, at most, µs", "other processes, % of the CPUs"],
                           [[number(max(row["late"] for row in rows)), f"{others[0]:.1f} to {others[-1]:.1f}"]]))
    return tables


# --- tables that are as the benchmark prints them ---------------------------------------------------------------

def fixed(row, key, digits):
    """With so many decimals, and the interval if there is one."""
    value = row[key]
    if not isinstance(value, (int, float)):
        return value
    text = f"{value:.{digits}f}"
    if key + "_low" in row:
        text += f" [{row[key + '_low']:.{digits}f}, {row[key + '_high']:.{digits}f}]"
    return text


def flat(rows, words, *columns):
    """Columns are title, key and decimals; `words` of them are words, or numbers as they are."""
    def cell(row, key, digits):
        return f"{row[key]:g}" if digits is None and isinstance(row[key], (int, float)) else \
            row[key] if digits is None else fixed(row, key, digits)
    return markdown([title for title, _, _ in columns], [[cell(row, key, digits) for _, key, digits in columns]
                                                         for row in rows], words)


def preempt_cost(result):
    return [flat(result["tables"]["preempt_cost"]["rows"], 1, ("units", "arm", None), ("10th percentile, µs", "p10", 2),
                 ("median, µs", "gap", 2), ("99th percentile, µs", "p99", 2), ("CPU time, µs", "cpu", 2),
                 ("median to yield", "to_yield", 2), ("to kernel", "to_kernel", 2))]


def preempt_forms(result):
    return [flat(result["tables"]["preempt_forms"]["rows"], 1, ("form", "form", None), ("CPU time, ns", "cpu", 0),
                 ("median, ns", "gap", 0), ("CPU time to the first row", "to_published", 2), ("to kernel", "to_kernel", 2))]


def preempt_overhead(result):
    def table(rows):
        columns = [("mode", "mode", None), ("slice, µs", "slice", None), ("overhead, %", "overhead", 2)]
        if "timer" in rows[0]:
            columns += [("a timer's own, %", "timer", 2), ("beyond that, %", "beyond", 2)]
        return flat(rows, 1, *columns)
    return [table(result["tables"][key]["rows"]) for key in ("several", "one")]


def preempt_timers(result):
    return [flat(result["tables"]["preempt_timers"]["rows"], 1, ("form", "form", None), ("threads", "threads", None),
                 ("median, µs", "median", 1), ("99th percentile, µs", "p99", 0), ("CPU time, mean, µs", "cpu", 1),
                 ("delivered, %", "delivered", 0), ("left out, %", "left_out", 0))]


def ult(result):
    rows = [row for row in result["tables"]["ult_armed"]["rows"] if row["operation"] != "init + fini"]
    return [flat(rows, 1, ("operation, with preemption to without", "operation", None), ("1 worker, CPU", "cpu_1", 3),
                 ("2 workers, CPU", "cpu_2", 2), ("2 workers, wall", "wall_2", 2))]


def hpp(result):
    return [flat(result["tables"]["hpp"]["rows"], 1, ("operation", "operation", None), ("1 worker, CPU: C, ns", "cpu_c", 1),
                 ("C++", "cpu_cpp", 1), ("ratio", "cpu_ratio", 2), ("2 workers, wall: C, ns", "wall_c", 1),
                 ("C++", "wall_cpp", 1), ("ratio", "wall_ratio", 2))]


# --- a document ---------------------------------------------------------------------------------------------------

TABLES = {"cholesky": cholesky, "insitu_md": insitu, "insitu_lammps": insitu, "tail_latency": tail,
          "preempt_cost": preempt_cost, "preempt_forms": preempt_forms, "preempt_overhead": preempt_overhead,
          "preempt_timers": preempt_timers, "ult": ult, "hpp": hpp}


def read(path):
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    if result["benchmark"] not in TABLES:
        raise Failure(f"{path}: not the --json of {', '.join(TABLES)}")
    return result


def machine(result):
    one = result["machine"]
    settings = ", ".join(f"{name} {value:g}" for name, value in result["settings"].items())
    return (f"{one['cpu']}, {one['cores']} CPUs, {one['kernel']}, {one['libc']}; load average {one['load_before']} before "
            f"and {one['load_after']} after; {settings}\n")


def replaced(text, table):
    """None: the document has no table with that first line."""
    head = table.split("\n", 1)[0]
    lines = text.split("\n")
    if head not in lines:
        return None
    begin = end = lines.index(head)
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return "\n".join(lines[:begin] + table.rstrip("\n").split("\n") + lines[end:])


def put(tables, document):
    with open(document, encoding="utf-8") as file:
        text = file.read()
    count = 0
    for table in tables:
        changed = replaced(text, table)
        if changed is not None:
            text, count = changed, count + 1
    if count == 0:
        raise Failure(f"{document}: none of its tables begins as one of these; without a document they are printed")
    with open(document, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{document}: {count} tables")


def main():
    if len(sys.argv) < 2:
        raise Failure("usage: tables.py RESULT.json [DOCUMENT.md...]")
    result = read(sys.argv[1])
    tables = TABLES[result["benchmark"]](result)
    for document in sys.argv[2:]:
        put(tables, document)
    if len(sys.argv) == 2:
        print(machine(result), *tables, sep="\n", end="")


if __name__ == "__main__":
    try:
        main()
    except (Failure, OSError, ValueError, KeyError) as failure:
        print(f"tables: {type(failure).__name__}: {failure}", file=sys.stderr)
        sys.exit(1)
