# SPDX-License-Identifier: Apache-2.0
"""The figure of docs/cholesky.md; bench/plot.py calls this with what bench/cholesky measured: speed by size of the matrix.
From left to right the arms of the paper, the other modes of preemption, and gangs."""
from growth.figure import chosen, finish, from_zero, line, names, panels

BENCHMARKS = ("cholesky",)
PAPER = ("OS threads, flat", "OS threads, nested", "ULTs, cooperative, barrier patched", "ULTs, klt, 1 ms",
         "ULTs, klt, 10 ms")


def draw_arms(axes, rows, arms, title):
    for number, arm in enumerate(arms):
        ended = [row for row in chosen(rows, arm=arm) if row["outcome"] == "ended"]
        if ended:
            style = "--" if "10 ms" in arm or "flat" in arm else "-"
            line(axes, ended, "size", "gflops", number, arm, linestyle=style)
    from_zero(axes)
    finish(axes, title, "rows of the matrix", "GFLOP/s", base=2, legend=False)
    axes.legend(fontsize=6)


def draw(pyplot, result, machine):
    rows = result["tables"]["cholesky"]["rows"]
    gangs = [arm for arm in names(rows, "arm") if arm.startswith("gang")]
    others = [arm for arm in names(rows, "arm") if arm not in (*PAPER, *gangs)]
    picture, all_axes = panels(pyplot, 3, machine, height=4.2, sharey=True)
    for axes, arms, title in zip(all_axes, (PAPER, others, gangs),
                                 ("as in the paper: klt is its KLT-switching", "other modes of preemption", "gangs")):
        draw_arms(axes, rows, arms, title)
    return picture
