# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/growth.md; bench/plot.py calls this with what bench/growth measured, or simulation.py computed."""

BENCHMARKS = ("growth", "growth-simulation")
COLORS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3")
MARKERS = "os^Dv<>"
WAYS = ("one creator", "halves", "thrum_spawn_many")


def chosen(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def names(rows, key):
    """In the order in which they come."""
    return list(dict.fromkeys(row[key] for row in rows))


def reach(rows, key):
    """How far the intervals reach down and up; none where there is only a number."""
    if key + "_low" not in rows[0]:
        return None
    return ([max(row[key] - row[key + "_low"], 0) for row in rows],
            [max(row[key + "_high"] - row[key], 0) for row in rows])


def line(axes, rows, x, y, number, label, **how):
    """One series, with its intervals."""
    style = {"color": COLORS[number % len(COLORS)], "marker": MARKERS[number % len(MARKERS)], "markersize": 4,
             "linewidth": 1.3, "capsize": 2, **how}
    axes.errorbar([row[x] for row in rows], [row[y] for row in rows], yerr=reach(rows, y), label=label, **style)


def finish(axes, title, x, y, base=10, legend=True):
    from matplotlib import ticker
    axes.set_xscale("log", base=base)
    if base == 2:
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_title(title, fontsize=8, loc="left")
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(True, linewidth=0.3)
    if legend:
        axes.legend(fontsize=7)


def from_zero(axes):
    axes.set_ylim(0, axes.get_ylim()[1] * 1.05)


def legend_beside(all_axes):
    """One for all panels: the series of the first."""
    all_axes[-1].legend(*all_axes[0].get_legend_handles_labels(), fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))


def panels(pyplot, count, machine, height=3.4, width=3.7, **more):
    pyplot.rcParams["svg.fonttype"] = "none"  # text stays text, which is a third of the size
    picture, axes = pyplot.subplots(1, count, figsize=(width * count, height), squeeze=False, layout="constrained",
                                    **more)
    picture.suptitle(machine, fontsize=8)
    return picture, list(axes[0])


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
