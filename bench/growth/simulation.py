#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A simulation of libthrum's default scheduler, event by event, for more CPUs than a machine has. What an operation costs
is what bench/growth measured here (the table "costs" of its --json); docs/studies/growth.md says what is in it and what is not.

    build/release/bench/growth --json >build/growth.json
    bench/growth/simulation.py build/growth.json >build/simulation.json     # efficiency, 1 to 64 CPUs
    bench/growth/simulation.py --table build/growth.json                    # beside what was measured with 1 and 2

A worker of the simulation has a CPU to itself, a deque, and does what src/sched does: a spawn runs the child at once and
leaves its maker in the deque; one that has nothing looks at the others from a random one on, takes the oldest of the first
that has something, breathes, and after a while parks; a push wakes one if none searches. The first theft from a deque
that was calm costs a membarrier. Each time a cache line was written by another CPU since, it has to come from there.
"""
import argparse
import heapq
import json
import random
import statistics
import sys

# src/sched/loop.c and pick.c; the test sees that they are the same there. The rest comes from the measured costs.
SEARCH_US, FAIR_US = 100, 100
FEW = 16  # src/sched/spawn_many.c

LENGTHS = (100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6)
CPUS = (1, 2, 4, 8, 16, 32, 64)
TASKS, FEW_TASKS = 8192, 1024
# How far off a simulated time of 1 or 2 workers may be, as a share of the measured one: the test sees to it with
# example.json. docs/studies/growth.md has the errors. Whether a theft comes in time for one creator's next task is a matter of ten
# ns where tasks are shorter than SHORTEST: two workers with those are not predicted, and the document says so.
BAND = {1: 0.15, 2: 0.35}
SHORTEST = 500
AT_WORK = 0.9  # of their time workers of a measurement were on a CPU, searching or working

WORK, SPAWN, JOIN = range(3)  # what a thread does next


class Costs:
    """From the table of a measurement, ns; each is used in one place below."""

    def __init__(self, table):
        values = {row["cost"]: row["value"] for row in table["rows"]}
        for name in ("spawn_ns", "join_ns", "join_far_ns", "switch_ns", "fence_ns", "look_ns", "relax_ns", "line_ns",
                     "steal_ns", "membarrier_ns", "interrupt_ns", "meet_ns", "wake_call_ns", "fair_every", "deque_calm"):
            setattr(self, name, values[name])
        # What is left of a way that was measured from end to end, without its parts that the simulation goes through
        # by itself: one line to see that there is something, half a round until the searcher looks.
        seen = values["line_ns"]
        around = values["relax_ns"] + values["look_ns"]
        theft = seen + values["steal_ns"]
        self.resume_ns = max(values["handoff_ns"] - around / 2 - theft, values["switch_ns"])
        self.leave_ns = max(values["turn_ns"] - self.resume_ns - theft, values["switch_ns"])
        self.rouse_ns = max(values["wake_ns"] - self.resume_ns - theft, 0)


class Unit:
    """A thread: what it does next is asked from a generator; or it is a task that works and ends."""
    __slots__ = ("body", "work", "ended_on", "joiner")

    def __init__(self, body):
        self.body, self.work = (body, None) if not isinstance(body, (int, float)) else (None, body)
        self.ended_on = self.joiner = None


class Worker:
    __slots__ = ("number", "current", "deque", "shared", "calm", "stolen", "version", "looked_at", "locked_until",
                 "seen", "delay", "spins", "since", "parked", "picks", "fair_since", "ticket")

    def __init__(self, number, count):
        self.number, self.current, self.deque = number, None, []
        self.shared, self.calm, self.stolen = False, 0, False  # the deque's mode (deque.h)
        self.version, self.looked_at, self.locked_until = 0, False, 0.0
        self.seen = [0] * count  # the version of each other's deque when it was last looked at
        self.delay = 0.0         # by interrupts, at its next step
        self.spins, self.since, self.parked = False, 0.0, False
        self.picks, self.fair_since, self.ticket = 0, 0.0, 0


class Simulation:
    """run() gives the time at which the first thread has ended, ns. Afterwards: `worked`, ns of work that was done by
    each worker; `begun`, `ended`, `steals`."""

    def __init__(self, costs, cpus, seed=1):
        self.costs, self.random = costs, random.Random(seed)
        self.workers = [Worker(i, cpus) for i in range(cpus)]
        self.events, self.order, self.now = [], 0, 0.0
        self.searching = self.parked = 0
        self.worked = [0.0] * cpus
        self.begun = self.ended = self.steals = self.parks = 0

    # --- events ---------------------------------------------------------------------------------------------

    def at(self, time, worker, step, *arguments):
        self.order += 1
        heapq.heappush(self.events, (time, self.order, worker, step, arguments))

    def after(self, ns, worker, step, *arguments):
        if worker.delay:
            ns, worker.delay = ns + worker.delay, 0.0
        self.at(self.now + ns, worker, step, *arguments)

    def run(self, first):
        root = Unit(first)
        self.begun += 1
        for worker in self.workers[1:]:
            self.search(worker)
        self.at(0.0, self.workers[0], self.go_on, root, None)
        while root.ended_on is None:
            self.now, _, worker, step, arguments = heapq.heappop(self.events)  # IndexError: all sleep, one is lost
            step(worker, *arguments)
        if self.begun != self.ended or any(worker.deque for worker in self.workers):
            raise AssertionError(f"{self.begun} threads began, {self.ended} ended")
        return self.now

    # --- a worker that runs a thread --------------------------------------------------------------------------

    def go_on(self, worker, unit, answer):
        worker.current = unit
        if unit.work is not None:
            self.work(worker, unit.work, self.end, unit)
            return
        try:
            what, about = unit.body.send(answer)
        except StopIteration:
            self.end(worker, unit)
            return
        if what == WORK:
            self.work(worker, about, self.go_on, unit, None)
        elif what == SPAWN:
            child = Unit(about)
            self.begun += 1
            self.after(self.costs.spawn_ns + self.own_deque(worker), worker, self.begin_child, unit, child)
        elif about.ended_on is not None:
            ns = self.costs.join_ns if about.ended_on is worker else self.costs.join_far_ns
            self.after(ns, worker, self.go_on, unit, None)
        else:
            about.joiner = unit
            self.next(worker, self.costs.switch_ns)

    def work(self, worker, ns, step, *arguments):
        self.worked[worker.number] += ns
        self.after(ns, worker, step, *arguments)

    def begin_child(self, worker, maker, child):
        worker.deque.append((maker, child))
        called = self.wake_check()
        worker.delay += called
        if called:
            self.after(0.0, worker, self.go_on, child, None)
        else:
            self.go_on(worker, child, None)

    def end(self, worker, unit):
        unit.ended_on = worker
        self.ended += 1
        worker.current = None
        if unit.joiner is not None:
            self.after(self.costs.meet_ns, worker, self.go_on, unit.joiner, None)
        else:
            self.next(worker, 0.0)

    def next(self, worker, ns):
        """Of its own deque the newest, now and then the oldest; else it searches."""
        ns += self.own_deque(worker) + (self.costs.fence_ns if worker.shared else 0.0)
        self.pop_calms(worker)
        if not worker.deque:
            self.after(ns + self.costs.leave_ns, worker, self.search)
            return
        maker, child = worker.deque.pop(self.which(worker))
        self.after(ns, worker, self.go_on, maker, child)

    def which(self, worker):
        worker.picks += 1
        if worker.picks >= self.costs.fair_every:
            worker.picks = 0
            if self.now - worker.fair_since >= FAIR_US * 1e3:
                worker.fair_since = self.now
                return 0
        return -1

    def own_deque(self, worker):
        """A push or a pop: a worker that looked at it meanwhile has its line."""
        worker.version += 1
        fetched, worker.looked_at = worker.looked_at, False
        return self.costs.line_ns if fetched else 0.0

    def pop_calms(self, worker):
        if worker.shared:
            worker.calm = self.costs.deque_calm if worker.stolen else worker.calm - 1
            worker.stolen = False
            worker.shared = worker.calm > 0

    # --- a worker that has none -------------------------------------------------------------------------------

    def search(self, worker):
        worker.spins = self.searching == 0 or 2 * self.searching < len(self.workers)
        self.searching += 1
        worker.since = self.now
        self.look(worker)

    def look(self, worker):
        self.look_on(worker, self.random.randrange(len(self.workers)), len(self.workers))

    def look_on(self, worker, place, left):
        """At so many others, from that one on."""
        ns = 0.0
        while left > 0:
            victim = self.workers[place]
            place = place + 1 if place + 1 < len(self.workers) else 0
            left -= 1
            if victim is worker:
                continue
            if worker.seen[victim.number] != victim.version:
                worker.seen[victim.number] = victim.version
                ns += self.costs.line_ns
                victim.looked_at = True
            else:
                ns += self.costs.look_ns
            if victim.deque and self.now + ns >= victim.locked_until:  # else another thief is at it
                self.reach_for(worker, victim, ns, place, left)
                return
        self.after(ns + self.costs.relax_ns, worker, self.look_again)

    def reach_for(self, worker, victim, ns, place, left):
        """A theft begins. By the time it comes to the oldest, the owner may have taken it."""
        ns += self.costs.steal_ns
        if not victim.shared:
            victim.shared, victim.calm = True, self.costs.deque_calm
            ns += self.costs.membarrier_ns
            for other in self.workers:
                if other.current is not None:
                    other.delay += self.costs.interrupt_ns
        victim.locked_until = self.now + ns
        victim.looked_at = True
        self.after(ns, worker, self.take, victim, place, left)

    def take(self, worker, victim, place, left):
        if not victim.deque:
            self.look_on(worker, place, left)
            return
        maker, child = victim.deque.pop(0)
        victim.stolen = True
        self.steals += 1
        self.searching -= 1
        self.after(self.costs.resume_ns, worker, self.go_on, maker, child)
        if self.searching == 0 and self.parked and any(other.deque for other in self.workers):
            worker.delay += self.wake_check()  # idle_found

    def look_again(self, worker):
        if worker.spins and self.now - worker.since < SEARCH_US * 1e3:
            self.look(worker)
            return
        self.searching -= 1
        self.parked += 1
        self.parks += 1
        worker.parked = True
        worker.ticket += 1
        self.after(self.costs.membarrier_ns, worker, self.look_before_sleep, worker.ticket)

    def look_before_sleep(self, worker, ticket):
        if worker.parked and worker.ticket == ticket and any(other.deque for other in self.workers):
            self.leave_park(worker, 0.0)

    def leave_park(self, worker, ns):
        worker.parked = False
        self.parked -= 1
        self.searching += 1
        worker.since = self.now + ns
        self.after(ns, worker, self.look)

    def wake_check(self):
        """After a push: what it takes the pusher."""
        if not self.parked or self.searching > 0:
            return 0.0
        self.leave_park(next(worker for worker in self.workers if worker.parked), self.costs.rouse_ns)
        return self.costs.wake_call_ns


# --- what is run: the same as bench/peers/grains.hpp ------------------------------------------------------------

def one_creator(tasks, ns):
    threads = []
    for _ in range(tasks):
        threads.append((yield SPAWN, ns))
    for thread in threads:
        yield JOIN, thread


def halves(tasks, ns):
    if tasks == 1:
        yield WORK, ns
        return
    child = yield SPAWN, halves(tasks // 2, ns)
    yield from halves(tasks - tasks // 2, ns)
    yield JOIN, child


def make_many(tasks, ns, threads):
    if tasks <= FEW:
        for _ in range(tasks):
            threads.append((yield SPAWN, ns))
        return
    child = yield SPAWN, make_many(tasks // 2, ns, threads)
    yield from make_many(tasks - tasks // 2, ns, threads)
    yield JOIN, child


def spawn_many(tasks, ns):
    threads = []
    yield from make_many(tasks, ns, threads)
    for thread in threads:
        yield JOIN, thread


WAYS = {"one creator": one_creator, "halves": halves, "thrum_spawn_many": spawn_many}


def simulate(costs, way, tasks, ns, cpus, seed=1):
    """A simulation that has run, and its time. What it did is looked at: all work, once, and not in less time than so
    many CPUs take."""
    simulation = Simulation(costs, cpus, seed)
    time = simulation.run(WAYS[way](tasks, ns))
    worked = sum(simulation.worked)
    if abs(worked - tasks * ns) > 1e-6 * tasks * ns:
        raise AssertionError(f"{worked} ns of work were done, of {tasks * ns}")
    if max(simulation.worked) > time * (1 + 1e-9):
        raise AssertionError("a CPU worked longer than there was time")
    return simulation, time


def efficiency(tasks, ns, cpus, time):
    return tasks * ns / (cpus * time)


# --- reports ----------------------------------------------------------------------------------------------------

def beside_measured(measured, costs, seeds=(1, 2, 3), most_tasks=1 << 30):
    """For each row of libthrum in the table of tasks: what the simulation says of the same, where there a worker has a
    CPU. So rows are left out in which the workers were kept from theirs, by other work; the second value says how many."""
    rows = []
    ours = [row for row in measured["tables"]["grains"]["rows"] if row["runtime"] == "libthrum"]
    at_work = [row for row in ours if row["workers"] == 1 or row["cpu"] > AT_WORK * row["workers"] * row["wall"]]
    for row in at_work:
        cpus, tasks, ideal = int(row["workers"]), min(int(row["tasks"]), most_tasks), row["ideal"]
        # With one worker what ran beside it is no part of the question: CPU time is. With two, waiting is.
        actual = row["cpu"] if cpus == 1 else row["wall"]
        predicted = statistics.median(
            simulate(costs, row["way"], tasks, ideal, cpus, seed)[1] for seed in seeds) / tasks
        rows.append({"way": row["way"], "length": row["length"], "workers": cpus, "measured": actual,
                     "simulated": predicted, "error": predicted / actual - 1,
                     "efficiency_measured": ideal / (actual * cpus)})
    return rows, len(ours) - len(at_work)


def is_predicted(row):
    return row["workers"] == 1 or row["way"] != "one creator" or row["length"] >= SHORTEST


def worst(rows):
    """Of those that it means to predict."""
    return {cpus: max((abs(row["error"]) for row in rows if row["workers"] == cpus and is_predicted(row)), default=None)
            for cpus in BAND}


def predictions(costs, lengths, cpus, tasks, progress):
    rows = []
    for way in WAYS:
        for length in lengths:
            for count in cpus:
                progress(f"simulation: {way}, {length:g} ns, {count} CPUs")
                simulation, time = simulate(costs, way, tasks, length, count)
                rows.append({"way": way, "length": length, "cpus": count,
                             "efficiency": efficiency(tasks, length, count, time), "steals": simulation.steals,
                             "parks": simulation.parks})
    return rows


def show(rows, disturbed):
    print("Wall time a task, ns (with one worker CPU time), as measured and as simulated\n")
    print(f"{'made by':18}{'task, ns':>10}{'workers':>9}{'measured':>13}{'simulated':>13}{'error, %':>10}")
    for row in rows:
        print(f"{row['way']:18}{row['length']:10g}{row['workers']:9}{row['measured']:13.1f}{row['simulated']:13.1f}"
              f"{row['error'] * 100:10.1f}")
    for cpus, most in worst(rows).items():
        if most is not None:
            errors = [abs(row["error"]) for row in rows if row["workers"] == cpus]
            print(f"\n{cpus} worker{'s' if cpus > 1 else ''}: off by {statistics.median(errors):.1%} in the median, "
                  f"{most:.1%} at most")
    if disturbed:
        print(f"\nLeft out: {disturbed} rows in which other work kept workers from their CPUs. Measure on a quiet machine.")


def read(path):
    with open(path, encoding="utf-8") as file:
        measured = json.load(file)
    if measured.get("benchmark") != "growth":
        raise ValueError(f"{path}: not the --json of bench/growth")
    if "costs" not in measured["tables"]:
        raise ValueError(f"{path}: the costs are not there, the machine was too busy; measure again")
    return measured


def main():
    parser = argparse.ArgumentParser(description="What libthrum's scheduler would do on more CPUs, simulated.")
    parser.add_argument("measured", help="The --json of bench/growth")
    parser.add_argument("--table", action="store_true", help="Beside what was measured with 1 and 2, as a table")
    parser.add_argument("--quick", action="store_true", help="A taste: fewer tasks, lengths and CPUs")
    options = parser.parse_args()
    measured = read(options.measured)
    costs = Costs(measured["tables"]["costs"])
    rows, disturbed = beside_measured(measured, costs, *(((1,), FEW_TASKS) if options.quick else ()))
    if options.table:
        show(rows, disturbed)
        return

    def progress(line):
        if sys.stderr.isatty():
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    quick = options.quick
    tasks = 256 if quick else TASKS
    predicted = predictions(costs, (1e3, 1e4) if quick else LENGTHS, (1, 2, 8) if quick else CPUS, tasks, progress)
    progress("")
    tables = {"beside_measured": {"title": "As measured and as simulated, ns a task", "rows": rows},
              "predictions": {"title": "Efficiency, simulated", "rows": predicted}}
    print(json.dumps({"benchmark": "growth-simulation", "simulated": True, "machine": measured["machine"],
                      "settings": {"tasks": tasks}, "tables": tables}))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, KeyError) as failure:
        print(f"simulation: {failure}", file=sys.stderr)
        sys.exit(1)
