# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/internals/preemption-cost.md; bench/plot.py calls this with what the benchmarks of preemption measured, and
bench/ult with --armed."""
from series import COLORS, MARKERS, chosen, finish, from_zero, line, measured, names, panels, reach

BENCHMARKS = ("preempt_cost", "preempt_forms", "preempt_overhead", "preempt_timers", "ult")
FEW_PERCENT = 0.03  # what --armed is expected to stay within


def points(axes, rows, key, number, label=None):
    """A value a row, one below the other, with its interval."""
    axes.errorbar([row[key] for row in rows], range(len(rows)), xerr=reach(rows, key), label=label, linestyle="none",
                  color=COLORS[number], marker=MARKERS[number], markersize=5, capsize=2, linewidth=1)


def name_rows(axes, rows, key):
    axes.set_yticks(range(len(rows)), [row[key] for row in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)


def finish_points(axes, title, x):
    axes.set_title(title, fontsize=8, loc="left")
    axes.set_xlabel(x, fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(True, linewidth=0.3)


def draw_cost(pyplot, tables, machine):
    rows = measured(tables["preempt_cost"]["rows"], "gap")
    picture, (gaps, cpu) = panels(pyplot, 2, machine, height=0.8 + 0.35 * len(rows), width=4.5, sharey=True)
    points(gaps, rows, "p10", 4, "10th percentile")
    points(gaps, rows, "gap", 0, "median")
    points(gaps, rows, "p99", 1, "99th percentile")
    points(cpu, rows, "cpu", 2)
    for axes, title in ((gaps, "from one unit to the next"), (cpu, "CPU time")):
        axes.set_xlim(left=0)
        finish_points(axes, title, "us a preemption")
    gaps.legend(fontsize=7)
    name_rows(gaps, rows, "arm")
    return picture


def draw_forms(pyplot, tables, machine):
    rows = measured(tables["preempt_forms"]["rows"], "cpu")
    picture, all_axes = panels(pyplot, 2, machine, height=0.8 + 0.35 * len(rows), width=4.5, sharey=True)
    for number, (axes, key, title) in enumerate(zip(all_axes, ("cpu", "gap"),
                                                    ("CPU time", "from one unit to the next, median"))):
        points(axes, rows, key, number)
        axes.set_xlim(left=0)
        finish_points(axes, title, "ns a preemption")
    name_rows(all_axes[0], rows, "form")
    return picture


def draw_overhead(pyplot, tables, machine):
    picture, all_axes = panels(pyplot, 2, machine, height=3.4, width=4.5)
    for axes, key in zip(all_axes, ("several", "one")):
        rows = measured(tables[key]["rows"], "ratio")
        for number, mode in enumerate(names(rows, "mode")):
            line(axes, chosen(rows, mode=mode), "slice", "overhead", number, mode)
        if key == "several":
            timer = chosen(rows, mode=rows[0]["mode"])
            line(axes, timer, "slice", "timer", 3, "a timer's own", linestyle="--", fillstyle="none")
        axes.axhline(0, color="black", linewidth=0.8)
        finish(axes, tables[key]["title"], "slice, us", "CPU time above that without, %")
    return picture


def draw_timers(pyplot, tables, machine, cores):
    rows = tables["preempt_timers"]["rows"]
    picture, all_axes = panels(pyplot, 3, machine)
    titles = {"median": "a tick, median", "p99": "a tick, 99th percentile", "cpu": "a tick, CPU time, mean"}
    for axes, (key, title) in zip(all_axes, titles.items()):
        for number, form in enumerate(names(rows, "form")):
            line(axes, chosen(rows, form=form), "threads", key, number, form)
        axes.axvline(cores, color="black", linewidth=0.8, linestyle=":")
        if key == "cpu":
            axes.set_yscale("log")
        else:
            from_zero(axes)
        finish(axes, title, "threads", "us", base=2)
    return picture


def draw_armed(pyplot, tables, machine):
    rows = tables["ult_armed"]["rows"]
    rows = [row for row in rows if row["operation"] != "init + fini"]  # of another order
    picture, all_axes = panels(pyplot, 2, machine, height=0.8 + 0.22 * len(rows), width=5, sharey=True)
    for number, (axes, key, title) in enumerate(zip(all_axes, ("cpu_1", "wall_2"),
                                                    ("one worker, CPU time", "two workers, wall time"))):
        axes.axvspan(1 - FEW_PERCENT, 1 + FEW_PERCENT, color="0.9")
        points(axes, rows, key, number)
        finish_points(axes, title, "with preemption, to without")
    name_rows(all_axes[0], rows, "operation")
    return picture


def draw(pyplot, result, machine):
    tables = result["tables"]
    if result["benchmark"] == "preempt_cost":
        return draw_cost(pyplot, tables, machine)
    if result["benchmark"] == "preempt_forms":
        return draw_forms(pyplot, tables, machine)
    if result["benchmark"] == "preempt_overhead":
        return draw_overhead(pyplot, tables, machine)
    if result["benchmark"] == "preempt_timers":
        return draw_timers(pyplot, tables, machine, result["machine"]["cores"])
    return draw_armed(pyplot, tables, machine)
