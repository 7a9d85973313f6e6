# SPDX-License-Identifier: Apache-2.0
"""The test bench.insitu: runs insitu_md, and insitu_lammps where it was built, at their smallest with all arms, as
bench.smoke does the other benchmarks. No time is judged. That all arms simulate and see the same is the benchmarks' own
affair: they fail where it is not so. Usage: smoke.py BUILD_FOLDER/bench
"""
import json
import os
import sys
from functools import partial

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import smoke  # noqa: E402
from smoke import INTERVAL, NOT_MEASURED, NUMBER, expect, expect_number, run  # noqa: E402

BASELINES = {"no analysis, ULTs", "no analysis, pthreads"}
ARMS = {"synchronous", "pthreads", "pthreads, nice 19", "pthreads, SCHED_IDLE", "ULTs", "ULTs, preemption",
        "ULTs, priorities", "ULTs, both"}
EXPECTED = {
    "baselines": ({"simulated": INTERVAL, "cpu": NUMBER, "to_ults": INTERVAL}, "arm", BASELINES),
    "insitu": ({"interval": NUMBER, "simulated": INTERVAL, "all": NUMBER, "cpu": NUMBER, "snapshots": NUMBER}, "arm",
               ARMS),
}


def check_rows(result, leave_out=False):
    """What has to be so at any speed."""
    for row in result["tables"]["insitu"]["rows"]:
        if NOT_MEASURED in row.values():
            continue
        for key in ("overhead", "overhead_all", "by_end", "left_out", "waits", "waited", "late"):
            expect_number(row, key)
        expect(row["snapshots"] == result["settings"]["steps"] // row["interval"], f"snapshots: {row}")
        expect(0 <= row["by_end"] <= row["looked_at"] <= 100, f"looked at: {row}")
        expect(row["simulated"] <= row["all"] * 1.0001 and row["overhead"] <= row["overhead_all"], f"times: {row}")
        if leave_out:
            expect(row["waits"] == 0 and row["waited"] == 0, f"it waits: {row}")
            left = row["snapshots"] * (1 - row["looked_at"] / 100)
            expect(abs(row["left_out"] - left) < 1e-6, f"left out: {row}")
        else:
            expect(row["left_out"] == 0 and row["looked_at"] == 100, f"something is left out: {row}")
        if row["arm"] == "synchronous":
            expect(row["by_end"] == 100 and row["waits"] == 0, f"it is within the simulation: {row}")


def check_wrongs(program, name):
    for wrong in ("0", "10,", "x", "-5", "10,1000000"):
        answer = run(program, "--quick", "--intervals", wrong)
        lines = answer.stderr.splitlines()
        expect(answer.returncode == 2 and len(lines) == 1 and lines[0].startswith(name + ": --intervals"),
               f"{wrong} is refused with {lines}")


def check_leaving_out(program):
    """With a single buffer, which is not free when the next snapshot comes. One round: medians would not add up."""
    answer = run(program, "--quick", "--rounds", "1", "--leave-out", "--buffers", "1", "--intervals", "1,5", "--json")
    expect(answer.returncode == 0, f"status {answer.returncode}: {answer.stderr}")
    result = json.loads(answer.stdout)
    check_rows(result, leave_out=True)
    expect("left out" in " ".join(result["notes"]), f"notes: {result['notes']}")
    smoke.check_tables(result)


def check_benchmark(folder, name):
    program = os.path.join(folder, name)
    smoke.EXPECTED[name] = EXPECTED
    smoke.check_options(program, name)
    check_wrongs(program, name)
    result = smoke.measure(program, name)
    check_rows(result)
    notes = " ".join(result["notes"])
    expect("total energy" in notes and "g(r) is highest" in notes, f"notes: {notes}")
    if name == "insitu_md":  # they have all but the simulation in common, and LAMMPS takes long to start
        check_leaving_out(program)
        smoke.check_figure(result)
        smoke.check_tables(result)


def main():
    folder = sys.argv[1]
    names = ["insitu_md"]
    if os.access(os.path.join(folder, "insitu_lammps"), os.X_OK):
        names.append("insitu_lammps")
    else:
        print("insitu_lammps: not built, it needs LAMMPS (Debian: liblammps-dev)")
    return 1 if smoke.count_failures({name: partial(check_benchmark, folder, name) for name in names}) else 0


if __name__ == "__main__":
    sys.exit(main())
