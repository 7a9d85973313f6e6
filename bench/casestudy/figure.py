# SPDX-License-Identifier: Apache-2.0
"""The figure of an experiment of the case study (docs/studies/casestudy.md); bench/plot.py calls it. A line for each row of the
table, and beside it, from left to right: the time, with the case study's own figure where it has one; the CPU time; the
states in which threads were seen."""

EXPERIMENTS = ("sleep_threads", "sleep_ults", "sleep_ways", "compute", "file_io", "mixed", "requests")
COLORS = {"OS threads": "#c44e52", "ULTs": "#4c72b0", "goroutines": "#55a868"}  # by how a crew's name begins
STATES = (("running_percent", "R, runs or could", "#dd8452"), ("sleeping_percent", "S, sleeps", "#a1c9f4"),
          ("disk_percent", "D, uninterruptible", "#8c613c"))


def color(row):
    return next((color for crew, color in COLORS.items() if row["crew"].startswith(crew)), "black")


def label(row):
    """What the first columns say."""
    words = [row[key] for key in ("crew", "way", "task") if key in row] + [f"{row['size']:g}"]
    if "milliseconds" in row:
        words.append(f"{row['milliseconds']:g} ms")
    return ", ".join(words)


def scale(axes, values):
    """Logarithmic where they differ much."""
    from matplotlib import ticker
    values = [value for value in values if value > 0]
    if max(values) > 3 * min(values):
        axes.set_xscale("log")
        if max(values) < 200 * min(values):
            axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
        return True
    axes.ticklabel_format(useOffset=False)
    return False


def draw_times(axes, rows):
    shown = [row["seconds"] for row in rows]
    for place, row in enumerate(rows):
        low, high = row.get("seconds_low", row["seconds"]), row.get("seconds_high", row["seconds"])
        axes.errorbar(row["seconds"], place, xerr=[[row["seconds"] - low], [high - row["seconds"]]], marker="o",
                      color=color(row), capsize=2, linewidth=1, markersize=5)
    seeds = [(row["seed_seconds"], place) for place, row in enumerate(rows)
             if isinstance(row.get("seed_seconds"), (int, float))]
    if seeds:
        axes.plot(*zip(*seeds), marker="D", fillstyle="none", color="black", linestyle="none", markersize=6,
                  label="the case study, 4 cores")
        axes.legend(fontsize=7)
        shown += [seconds for seconds, _ in seeds]
    scale(axes, shown)
    axes.set_xlabel("time, s", fontsize=8)


def draw_cpu(axes, rows):
    key = "cpu_ms" if "cpu_ms" in rows[0] else "cpu_us"
    axes.scatter([row[key] for row in rows], range(len(rows)), color=[color(row) for row in rows], s=25)
    if not scale(axes, [row[key] for row in rows]):
        axes.set_xlim(left=0)
    axes.set_xlabel("CPU time, ms" if key == "cpu_ms" else "server's CPU time, µs a request",
                    fontsize=8)


def draw_states(axes, rows):
    seen = [(place, row) for place, row in enumerate(rows) if row["threads"] != "-"]
    before = [0.0] * len(seen)
    for key, name, shade in STATES:
        parts = [row[key] for _, row in seen]
        axes.barh([place for place, _ in seen], parts, left=before, color=shade, label=name, height=0.7)
        before = [one + part for one, part in zip(before, parts)]
    for place, row in seen:
        axes.text(101, place, f"{row['threads']:.0f}", va="center", fontsize=7)
    axes.set_xlim(0, 112)
    axes.set_xticks(range(0, 101, 25))
    axes.set_xlabel("states of OS threads, % (and how many)", fontsize=8)
    axes.legend(fontsize=6, loc="lower center", bbox_to_anchor=(0.5, 1), ncol=3, frameon=False,
                columnspacing=0.8, handlelength=1)


def draw(pyplot, result, machine):
    pyplot.rcParams["svg.fonttype"] = "none"  # text stays text, which is a third of the size
    tables = list(result["tables"].values())
    heights = [len(table["rows"]) for table in tables]
    picture, grid = pyplot.subplots(
        len(tables), 3, squeeze=False, sharey="row", figsize=(10, 1.6 * len(tables) + 0.22 * sum(heights)),
        layout="constrained", gridspec_kw={"height_ratios": heights, "width_ratios": (4, 3, 4)})
    for table, (times, cpu, states) in zip(tables, grid):
        rows = table["rows"]
        draw_times(times, rows)
        draw_cpu(cpu, rows)
        draw_states(states, rows)
        times.set_yticks(range(len(rows)), [label(row) for row in rows], fontsize=8)
        times.set_ylim(len(rows) - 0.4, -0.6)
        times.set_title(table["title"], fontsize=8, loc="left")
        for axes in (times, cpu):
            axes.grid(True, linewidth=0.3)
            axes.set_axisbelow(True)
        for axes in (times, cpu, states):
            axes.tick_params(axis="x", labelsize=8)
    picture.suptitle(machine, fontsize=8)
    return picture
