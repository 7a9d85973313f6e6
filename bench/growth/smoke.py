# SPDX-License-Identifier: Apache-2.0
"""The test bench.growth: bench/growth at its smallest, as bench.smoke does the other benchmarks, and the simulation: what
must hold of each run of it, that it notices a thread that is lost, that its constants are the scheduler's, and that with 1
and 2 workers it is near what was measured, in example.json. Usage: smoke.py BUILD_FOLDER/bench
"""
import json
import os
import re
import sys
import tempfile
from functools import partial

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "..", "src", "sched")
EXAMPLE = os.path.join(HERE, "example.json")
sys.path[:0] = [os.path.join(HERE, ".."), HERE]
import simulation  # noqa: E402
import smoke  # noqa: E402
from smoke import INTERVAL, NUMBER, expect, run  # noqa: E402

OPERATIONS = {"spawn + join", "spawn queued + join", "yield"}
OVER_WORKERS = {"spawn + join, 1000 at a time", "fib(30), a spawn", "skynet, a leaf", "yield, four threads",
                "mutex + condition, there and back"}
EXPECTED = {
    "threads": ({"threads": NUMBER, "cpu": INTERVAL, "wall": INTERVAL}, "operation", OPERATIONS),
    "waiting": ({"threads": NUMBER, "bytes": INTERVAL, "begin_cpu": INTERVAL, "wake_cpu": INTERVAL}, "what",
                {"blocked in a condition", "asleep"}),
    "workers": ({"workers": NUMBER, "cpu": INTERVAL, "wall": INTERVAL}, "operation", OVER_WORKERS),
    "grains": ({"length": NUMBER, "workers": NUMBER, "tasks": NUMBER, "ideal": NUMBER, "cpu": NUMBER,
                "wall": INTERVAL, "efficiency": INTERVAL}, "way", set(simulation.WAYS)),
}
ENOUGH = {1: 27, 2: 12}  # rows of the example that other work did not disturb, by workers; there can be 27
ROWS = {"threads": 3 * 3, "waiting": 2 * 1, "workers": 5 * 2, "grains": 3 * 3 * 2}  # of --quick


# --- the benchmark ------------------------------------------------------------------------------------------

def check_costs(result):
    """There, or a note that the machine is too busy for them."""
    table = result["tables"].get("costs")
    if table is None:
        expect("costs: left out" not in " ".join(result["notes"]) and
               "parts of the scheduler cost: left out" in " ".join(result["notes"]), f"notes: {result['notes']}")
        return
    for row in table["rows"]:
        expect(row["value"] >= 0, f"a negative cost: {row}")
    values = {row["cost"]: row["value"] for row in table["rows"]}
    expect(values["spawn_ns"] > 0 and values["join_ns"] > 0 and values["relax_ns"] > 0, f"costs: {values}")
    simulation.Costs(table)


def check_benchmark(folder):
    program = os.path.join(folder, "growth")
    smoke.EXPECTED["growth"] = EXPECTED
    smoke.check_options(program, "growth")
    result = smoke.measure(program, "growth")
    for key, count in ROWS.items():
        expect(len(result["tables"][key]["rows"]) == count, f"{key} has {len(result['tables'][key]['rows'])} rows")
    for row in result["tables"]["threads"]["rows"]:
        if row["operation"] == "yield":
            expect(row["served"] == 100, f"a ring with room for all passes a client over: {row}")
    for row in result["tables"]["grains"]["rows"]:
        time = row["cpu"] if row["workers"] == 1 else row["wall"] * row["workers"]
        expect(abs(row["efficiency"] * time / row["ideal"] - 1) < 1e-3, f"efficiency: {row}")
    check_costs(result)


# --- the simulation ---------------------------------------------------------------------------------------

def example():
    with open(EXAMPLE, encoding="utf-8") as file:
        return json.load(file)


def costs_of_example():
    return simulation.Costs(example()["tables"]["costs"])


def check_invariants(_):
    """simulate() and run() look at work and threads by themselves."""
    costs = costs_of_example()
    for way in simulation.WAYS:
        for tasks, length in ((1, 1000), (33, 0), (257, 300), (500, 20000)):
            serial = None
            for cpus in (1, 2, 3, 8, 64):
                one, time = simulation.simulate(costs, way, tasks, length, cpus)
                expect(one.begun == one.ended and one.begun >= tasks, f"{way}: {one.begun} began, {one.ended} ended")
                expect(simulation.efficiency(tasks, length, cpus, time) <= 1, f"{way}: more than all, {time}")
                again, time_again = simulation.simulate(costs, way, tasks, length, cpus)
                expect((one.steals, time) == (again.steals, time_again), f"{way}: another time it is another")
                if cpus == 1:
                    serial = time
                    own = tasks * length + (one.begun - 1) * (costs.spawn_ns + costs.join_ns)
                    # By halves, what is taken out of turn to be fair costs a switch now and then.
                    more = 1e-9 if way == "one creator" else 1e-3
                    expect(-1e-9 * own <= time - own <= more * own, f"{way}: one CPU takes {time}, its parts {own}")
                    expect(one.steals == 0, f"{way}: one CPU has stolen")
            expect(length < 20000 or time < serial / 4, f"{way}: 64 CPUs take {time}, one {serial}")


class Losing(simulation.Simulation):
    """What is stolen is gone."""

    def take(self, worker, victim, place, left):
        if victim.deque:
            victim.deque.pop(0)
        self.after(0.0, worker, self.look_again)


class Working(simulation.Simulation):
    """Work takes half the time that it is long."""

    def work(self, worker, ns, step, *arguments):
        self.worked[worker.number] += ns
        self.after(ns / 2, worker, step, *arguments)


def check_that_it_notices(_):
    """Simulations that are wrong are refused."""
    right, costs = simulation.Simulation, costs_of_example()
    for wrong, cpus in ((Losing, 2), (Working, 1)):
        simulation.Simulation = wrong
        try:
            simulation.simulate(costs, "one creator", 50, 20000, cpus)
        except (AssertionError, IndexError):
            continue
        finally:
            simulation.Simulation = right
        raise smoke.Wrong(f"{wrong.__doc__} The check has not noticed.")


def number_in(path, name):
    with open(path, encoding="utf-8") as file:
        found = re.search(rf"\b{name} = (\d+)", file.read())
    expect(found, f"no {name} in {path}")
    return int(found.group(1))


def check_constants(_):
    loop = os.path.join(SOURCES, "loop.c")
    for name, path in (("SEARCH_US", loop), ("FAIR_US", os.path.join(SOURCES, "pool", "fair.h"))):
        expect(number_in(path, name) == getattr(simulation, name), f"{name} is another in the scheduler")
    expect(number_in(os.path.join(SOURCES, "spawn_many.c"), "FEW") == simulation.FEW, "FEW")
    expect(number_in(loop, "RELAX") == number_in(os.path.join(HERE, "costs.c"), "RELAX"), "RELAX")


def check_example(_):
    """Beside what was measured with 1 and 2 workers."""
    rows, disturbed = simulation.beside_measured(example(), costs_of_example(), (1,), simulation.FEW_TASKS)
    for workers, least in ENOUGH.items():
        count = len([row for row in rows if row["workers"] == workers])
        expect(count >= least, f"the example has {count} rows of {workers} workers, {disturbed} were disturbed")
    for workers, most in simulation.worst(rows).items():
        expect(most <= simulation.BAND[workers], f"{workers} workers: off by {most:.0%}")


# --- figures --------------------------------------------------------------------------------------------------

def check_figures(_):
    python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
    answer = run(sys.executable, os.path.join(HERE, "simulation.py"), "--quick", EXAMPLE)
    expect(answer.returncode == 0, answer.stderr)
    with tempfile.TemporaryDirectory() as scratch:
        simulated = os.path.join(scratch, "simulation.json")
        with open(simulated, "w", encoding="utf-8") as file:
            file.write(answer.stdout)
        for source, names in ((EXAMPLE, ("threads", "workers", "grains")), (simulated, ("simulated",))):
            answer = run(python, os.path.join(HERE, "..", "plot.py"), source, os.path.join(scratch, "growth"))
            if answer.returncode != 0:
                smoke.expect_missing(answer, "plot")
                return
            for name in names:
                with open(os.path.join(scratch, f"growth-{name}.svg"), "rb") as file:
                    picture = file.read()
                expect(picture.startswith(b"<?xml") and (name != "simulated" or b"SIMULATED" in picture), name)


def main():
    checks = (check_constants, check_invariants, check_that_it_notices, check_example, check_figures, check_benchmark)
    return 1 if smoke.count_failures({check.__name__: partial(check, sys.argv[1]) for check in checks}) else 0


if __name__ == "__main__":
    sys.exit(main())
