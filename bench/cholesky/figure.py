# SPDX-License-Identifier: Apache-2.0
"""The figure of docs/studies/cholesky.md; bench/plot.py calls this with what bench/cholesky measured: speed by size of the matrix,
or, of one size, by arm. From left to right the arms of the paper, the other modes of preemption, and gangs; nested OS
threads in all three."""
from series import chosen, finish, from_zero, line, measured, names, panels, reach

BENCHMARKS = ("cholesky",)
NESTED = "OS threads, nested"
PAPER = ("OS threads, flat", "ULTs, cooperative, barrier patched", "ULTs, klt, 1 ms", "ULTs, klt, 10 ms")


def draw_arms(axes, rows, arms, title):
    for number, arm in enumerate((NESTED, *arms)):
        ended = measured(chosen(rows, arm=arm), "gflops")
        style = {"linestyle": "--" if "10 ms" in arm or "flat" in arm else "-"}
        if arm == NESTED:
            style = {"color": "black", "marker": "x"}
        if ended:
            line(axes, ended, "size", "gflops", number - 1, arm, **style)
    from_zero(axes)
    finish(axes, title, "rows of the matrix", "GFLOP/s", base=2, legend=False)
    axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncol=2)


def draw_size(axes, rows):
    """All arms at one size, one below the other."""
    rows = measured(rows, "gflops")
    axes.barh(range(len(rows)), [row["gflops"] for row in rows], xerr=reach(rows, "gflops"), color="#4c72b0", capsize=2)
    axes.set_yticks(range(len(rows)), [row["arm"] for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("GFLOP/s", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(True, axis="x", linewidth=0.3)


def draw(pyplot, result, machine):
    rows = result["tables"]["cholesky"]["rows"]
    teams = f"teams of {result['settings']['members']:g}; {machine}"
    if len(names(rows, "size")) == 1:
        picture, (axes,) = panels(pyplot, 1, f"{rows[0]['size']:g} rows, {teams}", height=4, width=7.4)
        draw_size(axes, rows)
        return picture
    gangs = [arm for arm in names(rows, "arm") if arm.startswith("gang")]
    others = [arm for arm in names(rows, "arm") if arm not in (NESTED, *PAPER, *gangs)]
    picture, all_axes = panels(pyplot, 3, teams, height=4.8, sharey=True)
    for axes, arms, title in zip(all_axes, (PAPER, others, gangs),
                                 ("as in the paper: klt is its KLT-switching", "other modes of preemption", "gangs")):
        draw_arms(axes, rows, arms, title)
    return picture
