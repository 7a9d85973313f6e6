#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the paper's figure 1 again, thread creation by number of creators, from what bench/spawn measured
(or stdasync, or create_detach), as SVG and PNG:

    build/release/bench/spawn --full --creators 1,2,4,8,16,32 --json >build/spawn.json
    bench/plot.py build/spawn.json docs/figures/spawn

and what the experiments of the case study measured (casestudy/figure.py), and bench/growth, whose figures are several:
TARGET-threads and so on (growth/figure.py), what preemption costs (preempt_figure.py), tail_latency (tail/figure.py),
bench/cholesky (cholesky/figure.py), and simulations that are analysed while they run (insitu/figure.py). The bars are
the intervals of the medians, which the table has in brackets. The only use of matplotlib; python3-matplotlib of Debian belongs to /usr/bin/python3, hence the first line.
"""
import json
import os
import sys

import preempt_figure as preempt
from casestudy import figure
from cholesky import figure as cholesky
from common import Failure
from growth import figure as growth
from insitu import figure as insitu
from tail import figure as tail

TABLES = {"spawn": "std::thread, create and join", "stdasync": "std::async and get",
          "create_detach": "std::thread, create and detach"}
KNOWN = (*TABLES, *figure.EXPERIMENTS, *growth.BENCHMARKS, *preempt.BENCHMARKS, *cholesky.BENCHMARKS,
         *insitu.BENCHMARKS, tail.BENCHMARK)
SERIES = (("default", "default", "o", "#c44e52"), ("cache", "cache", "s", "#4c72b0"))


def read(path):
    """The benchmark's result; what else it could be is one line."""
    try:
        with (sys.stdin if path == "-" else open(path, encoding="utf-8")) as file:
            result = json.load(file)
        known = result["benchmark"] in KNOWN and (result["benchmark"] != "ult" or "ult_armed" in result["tables"])
        tables = list(result["tables"].values()) if known else []
        empty = not tables or not all(table["rows"] for table in tables)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"{path}: {type(error).__name__}: {error}") from error
    if empty:
        raise Failure(f"{path}: not the --json of {', '.join(KNOWN)} (with --armed)")
    return result


def values(rows, series):
    """The rates in threads/s, and how far their intervals reach down and up."""
    key = series + "_per_s"  # in thousands
    rates = [row[key] * 1e3 for row in rows]
    low = [(row[key] - row[key + "_low"]) * 1e3 for row in rows]
    high = [(row[key + "_high"] - row[key]) * 1e3 for row in rows]
    return rates, (low, high)


def draw_creators(pyplot, result):
    from matplotlib import ticker

    rows = sorted(result["tables"][result["benchmark"]]["rows"], key=lambda row: row["creators"])
    picture, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    creators = [row["creators"] for row in rows]
    for series, label, marker, color in SERIES:
        rates, reach = values(rows, series)
        axes.errorbar(creators, rates, yerr=reach, marker=marker, color=color, label=label, capsize=3,
                      linewidth=1.5, markersize=5)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(creators)
    axes.xaxis.set_major_formatter(ticker.ScalarFormatter())
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    axes.set_ylim(bottom=10 ** int(len(str(int(min(values(rows, "default")[0])))) - 1))
    axes.set_xlabel("creators")
    axes.set_ylabel("threads/s (logarithmic)")
    settings = result["settings"]
    axes.set_title(f"{TABLES[result['benchmark']]}: "
                   f"median of {settings['rounds']:g} × {settings['seconds']:g} s\n{machine(result)}", fontsize=8)
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend()
    return picture


def machine(result):
    one = result["machine"]
    return (f"{one['cpu']}, {one['cores']} CPUs, {one['kernel']}, {one['libc']}, "
            f"load {one['load_before'].split()[0]}")


def draw(result, target):
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "thrum"  # the same input gives the same file
    from matplotlib import pyplot

    if result["benchmark"] in TABLES:
        pictures = {"": draw_creators(pyplot, result)}
    elif result["benchmark"] in growth.BENCHMARKS:
        pictures = growth.draw(pyplot, result, machine(result))
    elif result["benchmark"] in preempt.BENCHMARKS:
        pictures = {"": preempt.draw(pyplot, result, machine(result))}
    elif result["benchmark"] == tail.BENCHMARK:
        pictures = {"": tail.draw(pyplot, result, machine(result))}
    elif result["benchmark"] in cholesky.BENCHMARKS:
        pictures = {"": cholesky.draw(pyplot, result, machine(result))}
    elif result["benchmark"] in insitu.BENCHMARKS:
        pictures = {"": insitu.draw(pyplot, result, machine(result))}
    else:
        pictures = {"": figure.draw(pyplot, result, machine(result))}
    folder = os.path.dirname(target)
    if folder:
        os.makedirs(folder, exist_ok=True)
    for suffix, picture in pictures.items():
        picture.savefig(target + suffix + ".svg", metadata={"Date": None})
        picture.savefig(target + suffix + ".png", dpi=150, metadata={"Software": None})
        print(f"{target}{suffix}.svg, {target}{suffix}.png")


def main():
    if len(sys.argv) != 3:
        raise Failure("usage: plot.py RESULT.json TARGET, for TARGET.svg and TARGET.png; - is standard input")
    result = read(sys.argv[1])
    try:
        draw(result, sys.argv[2])
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "matplotlib":
            raise
        raise Failure(f"{sys.executable} has no matplotlib: apt-get install python3-matplotlib, which is for "
                      "/usr/bin/python3") from error


if __name__ == "__main__":
    try:
        main()
    except (Failure, OSError) as failure:
        print(f"plot: {failure}", file=sys.stderr)
        sys.exit(1)
