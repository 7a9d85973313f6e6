# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/studies/growth.md; bench/plot.py calls this with what bench/growth measured, or simulation.py computed."""
from series import chosen, finish, from_zero, legend_beside, line, names, panels

BENCHMARKS = ("growth", "growth-simulation")
WAYS = ("one creator", "halves", "thrum_spawn_many")


def draw_threads(pyplot, tables, machine):
    picture, (costs, turns, memory, waits) = panels(pyplot, 4, machine)
    rows = tables["threads"]["rows"]
    for number, operation in enumerate(names(rows, "operation")):
        line(costs, chosen(rows, operation=operation), "threads", "cpu", number, operation)
    from_zero(costs)
    finish(costs, "CPU time an operation, one worker", "threads at a time", "ns")
    line(turns, chosen(rows, operation="yield"), "threads", "served", 2, "had a turn meanwhile")
    finish(turns, "threads that yield", "threads at a time", "%")
    rows = tables["waiting"]["rows"]
    for number, what in enumerate(names(rows, "what")):
        line(memory, chosen(rows, what=what), "threads", "bytes", number, what)
        line(waits, chosen(rows, what=what), "threads", "begin_cpu", number, what + ": until it waits")
        line(waits, chosen(rows, what=what), "threads", "wake_cpu", number, what + ": wake, end, join",
             linestyle="--", fillstyle="none")
    from_zero(memory)
    finish(memory, "resident memory of one that waits", "threads", "bytes")
    from_zero(waits)
    finish(waits, "CPU time of one that waits", "threads", "ns")
    return picture


def draw_workers(pyplot, tables, machine, cores):
    rows = tables["workers"]["rows"]
    operations = names(rows, "operation")
    picture, all_axes = panels(pyplot, len(operations), machine, height=2.8, width=2.9)
    for operation, axes in zip(operations, all_axes):
        line(axes, chosen(rows, operation=operation), "workers", "cpu", 0, "CPU time")
        line(axes, chosen(rows, operation=operation), "workers", "wall", 1, "wall time")
        axes.axvline(cores, color="black", linewidth=0.8, linestyle=":", label=f"{cores} CPUs")
        from_zero(axes)
        finish(axes, operation, "workers", "ns an operation", base=2)
    return picture


def draw_grains(pyplot, tables, machine):
    rows = tables["grains"]["rows"]
    workers = names(rows, "workers")
    picture, all_axes = panels(pyplot, len(workers), machine, height=3.8, sharey=True)
    for axes, count in zip(all_axes, workers):
        for number, runtime in enumerate(names(rows, "runtime")):
            for style, way in zip(("-", "--", ":"), WAYS):
                series = chosen(rows, runtime=runtime, way=way, workers=count)
                if series:
                    line(axes, series, "length", "efficiency", number, f"{runtime}, {way}", linestyle=style)
        axes.set_ylim(0, 1.1)
        finish(axes, f"{count:g} worker" + ("s" if count > 1 else ""), "a task, ns", "efficiency", legend=False)
    legend_beside(all_axes)
    return picture


def draw_simulated(pyplot, tables, machine):
    rows, measured = tables["predictions"]["rows"], tables["beside_measured"]["rows"]
    picture, all_axes = panels(pyplot, len(WAYS), "SIMULATED, from costs measured on: " + machine, height=4,
                               sharey=True)
    for axes, way in zip(all_axes, WAYS):
        for number, cpus in enumerate(names(rows, "cpus")):
            line(axes, chosen(rows, way=way, cpus=cpus), "length", "efficiency", number,
                 f"{cpus} CPU" + ("s" if cpus > 1 else "") + ", simulated", marker="")
        for number, workers in enumerate(names(measured, "workers")):
            seen = [{**row, "efficiency": row["efficiency_measured"]}
                    for row in chosen(measured, way=way, workers=workers)]
            line(axes, seen, "length", "efficiency", number, f"{workers}, measured", linestyle="none")
        axes.set_ylim(0, 1.1)
        finish(axes, f"{way} (simulated)", "a task, ns", "efficiency", legend=False)
    legend_beside(all_axes)
    return picture


def draw(pyplot, result, machine):
    """Pictures by what is added to the target's name."""
    tables = result["tables"]
    if result["benchmark"] == "growth-simulation":
        return {"-simulated": draw_simulated(pyplot, tables, machine)}
    return {"-threads": draw_threads(pyplot, tables, machine),
            "-workers": draw_workers(pyplot, tables, machine, result["machine"]["cores"]),
            "-grains": draw_grains(pyplot, tables, machine)}
