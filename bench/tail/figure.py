# SPDX-License-Identifier: Apache-2.0
"""The figure of docs/studies/tail-latency.md; bench/plot.py calls this with what bench/tail_latency measured: by load, what a
request takes in the median, and what one in a thousand short ones and one in a hundred long ones takes at least."""
from series import COLORS, chosen, finish, legend_beside, line, measured, names, panels

BENCHMARK = "tail_latency"
PANES = (("short_p50", "short requests, median", 1e-3), ("short_p999", "short requests, 99.9th percentile", 1e-3),
         ("long_p99", "long requests, 99th percentile", 1))


def in_ms(rows, key, ms):
    """The column and its interval, which are in units of so many ms."""
    return [{**row, **{each: row[each] * ms for each in (key, key + "_low", key + "_high")}} for row in rows]


def draw(pyplot, result, machine):
    from matplotlib import ticker
    rows = measured(result["tables"]["tail"]["rows"], "short_p999")
    picture, all_axes = panels(pyplot, len(PANES), machine, height=3.8, width=3.5)
    for axes, (key, title, ms) in zip(all_axes, PANES):
        for number, arm in enumerate(names(rows, "arm")):
            last = {"color": "black", "marker": "P"} if number >= len(COLORS) else {}
            line(axes, in_ms(chosen(rows, arm=arm), key, ms), "load", key, number, arm, **last)
        axes.set_yscale("log")
        finish(axes, title, "load, % of the CPUs", "ms", legend=False)
        axes.set_xscale("linear")
        axes.set_xticks(sorted({row["load"] for row in rows}))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.grid(True, which="minor", linewidth=0.15)
    legend_beside(all_axes)
    return picture
