# SPDX-License-Identifier: Apache-2.0
"""The figure of docs/tail-latency.md; bench/plot.py calls this with what bench/tail_latency measured: by load, what one in
a thousand requests takes at least, short ones and long ones."""
from growth.figure import COLORS, chosen, finish, legend_beside, line, names, panels

BENCHMARK = "tail_latency"


def draw(pyplot, result, machine):
    rows = [row for row in result["tables"]["tail"]["rows"] if isinstance(row["short_p999"], (int, float))]
    picture, all_axes = panels(pyplot, 3, machine, height=3.8, width=3.5)
    panes = (("short_p50", "short requests, median", "us"), ("short_p999", "short requests, 99.9th percentile", "us"),
             ("long_p999", "long requests, 99.9th percentile", "ms"))
    for axes, (key, title, unit) in zip(all_axes, panes):
        for number, arm in enumerate(names(rows, "arm")):
            last = {"color": "black", "marker": "P"} if number >= len(COLORS) else {}
            line(axes, chosen(rows, arm=arm), "load", key, number, arm, **last)
        axes.set_yscale("log")
        finish(axes, title, "load, % of the CPUs", unit + " (logarithmic)", legend=False)
        axes.set_xscale("linear")
        axes.set_xticks(sorted({row["load"] for row in rows}))
        axes.grid(True, which="minor", linewidth=0.15)
    legend_beside(all_axes)
    return picture
