# SPDX-License-Identifier: Apache-2.0
"""The figure of docs/studies/insitu.md; bench/plot.py calls this with what bench/insitu_md or insitu_lammps measured: what an
analysis costs the simulation, by how often it looks, and how much of it is done by then."""
from series import chosen, finish, legend_beside, line, measured, names, panels

BENCHMARKS = ("insitu_md", "insitu_lammps")
STYLES = {  # what they have in common: kernel threads are dashed
    "synchronous": {"color": "black", "marker": "x"},
    "pthreads": {"color": "#c44e52", "marker": "o", "linestyle": "--"},
    "pthreads, nice 19": {"color": "#dd8452", "marker": "s", "linestyle": "--"},
    "pthreads, SCHED_IDLE": {"color": "#937860", "marker": "^", "linestyle": "--"},
    "ULTs": {"color": "#8172b3", "marker": "o"},
    "ULTs, preemption": {"color": "#da8bc3", "marker": "s"},
    "ULTs, priorities": {"color": "#55a868", "marker": "^"},
    "ULTs, both": {"color": "#4c72b0", "marker": "D", "linewidth": 2.2},
}
PANELS = (("overhead", "until the simulation is over", "overhead, %"),
          ("overhead_all", "until all snapshots have been looked at", "overhead, %"),
          ("by_end", "looked at when the simulation is over", "of the snapshots, %"))


def draw(pyplot, result, machine):
    from matplotlib import ticker
    table = result["tables"]["insitu"]
    rows = measured(table["rows"], "overhead")
    picture, all_axes = panels(pyplot, len(PANELS), f"{table['title']}; {machine}", height=3.8)
    for axes, (key, title, y) in zip(all_axes, PANELS):
        for number, arm in enumerate(names(rows, "arm")):
            line(axes, chosen(rows, arm=arm), "interval", key, number, arm, **STYLES.get(arm, {}))
        finish(axes, title, "steps from one snapshot to the next", y, legend=False)
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    for axes in all_axes[:2]:
        axes.axhline(0, color="black", linewidth=0.8)
    all_axes[2].set_ylim(0, 105)
    legend_beside(all_axes)
    return picture
