#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ctest (build.calls): calls between libthrum's objects go downwards, as its folders stand in docs/internals/architecture.md.

Which object needs which is read from their symbols by nm. Two things hold:

- From one folder to another a symbol is needed only downwards, but for those that src/sched/upward.h declares, and three
  that context.S needs: these are all that sched and arch ask of folders above them, and each is needed. On x86-64 context.S also
  needs two to leave a region.
- Inside a folder no cycle has more than three objects. preempt_pending is left out: leave() calls it, at the end of
  each region, so that whatever has regions needs it.

What libthrum offers in libc's place (clock_gettime and others) is a call of libc to the caller.

Usage: check-calls.py SOURCES NM OBJECT...
"""

import collections
import pathlib
import re
import subprocess
import sys

ORDER = "base arch os kthread context sched preempt sync inspect runtime".split()
UPWARD = "src/sched/upward.h"
FROM_ARCH = {"thrum_worker", "unit_main", "unit_ended"}  # context.S begins and ends units
FROM_X86_64 = {"thrum_nopreempt", "preempt_pending"}  # ... and leaves the region of one that has yielded
LARGEST = 3
EVERYWHERE = {"preempt_pending"}


def symbols(nm, objects):
    """What object defines each symbol, and what each object needs: {symbol: object}, {object: {symbol}}."""
    defined, needed = {}, collections.defaultdict(set)
    listing = subprocess.run([nm, "-A", "-P", *objects], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        path, _, rest = line.partition(": ")
        symbol, kind = rest.split()[:2]
        name = re.sub(r"^.*\.dir/(\./)?|\.[cS]\.o$", "", path)
        if kind == "U":
            needed[name].add(symbol)
        elif kind in "TDBRVWCGS":
            defined[symbol] = name
    return defined, needed


def declared(header):
    """The names in this header, without those in comments and #include lines alone."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*|^ *#[^\n]*", " ", header.read_text(), flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"\b\w+\b", code))


def folder(name):
    return name.split("/")[1]


def knots(graph):
    """Strongly connected components of more than one node, by Kosaraju."""
    order, seen = [], set()

    def visit(start, edges, done):
        stack = [(start, iter(sorted(edges[start])))]
        seen.add(start)
        while stack:
            node, rest = stack[-1]
            following = next((other for other in rest if other not in seen), None)
            if following is None:
                stack.pop()
                done.append(node)
            else:
                seen.add(following)
                stack.append((following, iter(sorted(edges[following]))))

    for node in sorted(graph):
        if node not in seen:
            visit(node, graph, order)
    back = {node: set() for node in graph}
    for node, others in graph.items():
        for other in others:
            back[other].add(node)
    seen.clear()
    found = []
    for node in reversed(order):
        if node not in seen:
            part = []
            visit(node, back, part)
            found.append(part)
    return [set(part) for part in found if len(part) > 1]


def faults(defined, needed, upward, largest=LARGEST):
    """What is against the order, a line each. `upward`: the names in sched's header of calls upwards."""
    from_arch = FROM_ARCH | (FROM_X86_64 if "src/arch/x86_64/context" in needed else set())
    named = {"arch": from_arch, "sched": upward & set(defined)}
    unused = {place: set(symbols_named) for place, symbols_named in named.items()}
    names = sorted(set(needed) | set(defined.values()))
    graph = {place: {name: set() for name in names if folder(name) == place} for place in ORDER}
    wrong = []
    for name in names:
        for symbol in sorted(needed.get(name, ())):
            other = defined.get(symbol)
            # What has no prefix of ours is libc's, whichever library defines it.
            if other is None or other == name or re.match(r"(pthread|thrd)_|clock_gettime$", symbol):
                continue
            here, there = ORDER.index(folder(name)), ORDER.index(folder(other))
            if here == there and symbol not in EVERYWHERE:
                graph[folder(name)][name].add(other)
            elif here < there and symbol in named.get(folder(name), ()):
                unused[folder(name)].discard(symbol)
            elif here < there:
                wrong.append(f"{name} needs {symbol} of {other}, which is above it: "
                             f"declare it in {UPWARD}, or turn it around")
    for place, left in unused.items():
        wrong += [f"src/{place} needs {symbol} of no folder above it any more" for symbol in sorted(left)]
    for place in ORDER:
        for knot in knots(graph[place]):
            if len(knot) > largest:
                members = " ".join(sorted(name.split("/")[-1] for name in knot))
                wrong.append(f"src/{place}: these need each other: {members}. Which needs which:")
                wrong += [f"    {name} needs {', '.join(sorted(graph[place][name] & knot))}" for name in sorted(knot)]
    return wrong


def main():
    sources, nm, objects = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    defined, needed = symbols(nm, objects)
    wrong = faults(defined, needed, declared(sources / UPWARD))
    print("\n".join(wrong) if wrong else
          f"{len(set(needed) | set(defined.values()))} objects, each needs only what is below it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
