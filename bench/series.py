# SPDX-License-Identifier: Apache-2.0
"""Rows of a benchmark's table as lines in a figure: what the figures of this folder share (growth/figure.py,
preempt_figure.py, cholesky/figure.py, insitu/figure.py, tail/figure.py)."""

COLORS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3")
MARKERS = "os^Dv<>"


def chosen(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def measured(rows, key):
    """Without what this build or machine does not have, and what did not end."""
    return [row for row in rows if isinstance(row.get(key), (int, float))]


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
