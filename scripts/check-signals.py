#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ctest (build.signals): what libthrum's signal handlers reach is safe there.

The calls are read from the disassembled objects, so what the compiler has inlined is its caller's. From each handler on:

- Of libc only functions of ALLOWED are called: POSIX' async-signal-safe ones, and thin wrappers of system calls.
- A function that other files call as well says that a handler does: its declaration begins with SIGSAFE, or with INSIDE
  (a handler goes inside only if it has interrupted what was not), or its name ends with _sigsafe.
- What a file calls by pointers is listed in BY_POINTER.

A handler switches to other units; what these do is not the handler's, so the search ends at context.S.

Usage: check-signals.py SOURCES OBJDUMP OBJECT...
"""

import collections
import pathlib
import re
import subprocess
import sys

HANDLERS = ["preempt/handler:on_signal", "preempt/libc_signals:on_cancel", "preempt/libc_signals:on_set_ids",
            "runtime/overflow:on_fault"]
SWITCH = "context.S"

# signal-safety(7), then what glibc implements by a system call or by reading a constant.
ALLOWED = set("memcpy memmove memset strlen strchr sigaction sigaltstack getpid write fstat __errno_location".split() +
              "mmap munmap mprotect madvise getcpu sched_setaffinity __libc_current_sigrtmax".split())
TOOLS = re.compile(r"__([atl]san|sanitizer)_")  # weak; under a tool no thread is preempted (context/annotate.h)

POOLS = ["sched/pool/pool_queue", "sched/pool/pool_priority", "sched/pool/pool_deadline", "sched/pool/pool_deque"]
THE_PROGRAMS = []  # its own handler, or a pool of a kind of its own: what it calls is its affair
LIBCS = []  # libc's handler for the same signal, or its clock
BY_POINTER = {  # of a file, as compilers differ in which of its functions has the call
    "context/depot": ["context/stack:top_of", "context/stack:open_chunk", "sched/keys:block_at", "sched/unit:unit_at"],
    "os/memory": ["context/annotate:forget_frames"],
    "preempt/handler": ["preempt/handler:preempt_here"],  # arch_signal_call
    "preempt/carrier": ["runtime/places:places_enter"],
    "preempt/give_way": [
        "preempt/lend:lend_choose_next", "preempt/lend:take_tcb", "preempt/lend:return_tcb", "preempt/klt:change",
        "preempt/yield:mode_change_here"],
    "preempt/libc_signals": LIBCS,
    "runtime/overflow": THE_PROGRAMS,
    "sched/libc_self": LIBCS,
    "sched/pick": ["sched/trim:arm"],
    "sched/pool/pool": [f"{pool}:push" for pool in POOLS] + ["sched/pool/pool_deque:push_behind"],
    "sched/pool/scheduler": [f"{pool}:size" for pool in POOLS] + ["sched/pool/stacked:wake_for"],
    "sched/preempted": [f"{pool}:{name}" for pool in POOLS for name in ("pop", "size")] + ["sched/pool/pool_deque:steal"],
    "sched/time/timed_wait": [
        "sched/wait:give_up", "sched/join:stop_joining", "sched/suspend:give_up", "runtime/blocking:give_up",
        "runtime/workers:give_up"],
    "sched/time/timer": ["sched/time/timed_wait:time_out", "sched/trim:due", "sched/call:go_off"],
}

# Not taken: dlsym before main alone, since a constructor calls it.
NEVER = {"sched/libc_self:find"}

CONTEXT = r"^(?:(?:SIGSAFE|INSIDE|ENTERS|LEAVES|INSIDE_UNCHECKED) )+"


def name_of(path):
    return re.sub(r"^.*\.dir/(\./)?(src/)?|\.c\.o$|\.o$", "", path)


def functions(objdump, objects):
    """{(object, section, address): function}, and the object that defines each function others can name."""
    listing = subprocess.run([objdump, "-t", *objects], check=True, capture_output=True, text=True).stdout
    at, home, here = {}, {}, ""
    for line in listing.splitlines():
        if header := re.match(r"(\S+):\s+file format", line):
            here = name_of(header[1])
        elif symbol := re.match(r"([0-9a-f]+) (.{7}) (\.text\S*)\s+[0-9a-f]+ (?:\.\w+ )?(\S+)$", line):
            at[here, symbol[3], int(symbol[1], 16)] = symbol[4]
            if symbol[2][0] != "l":
                home[symbol[4]] = here
    return at, home


def calls_of(objdump, objects, at):
    """{object:function: {(object, called)}}, and the functions that call by pointer."""
    listing = subprocess.run([objdump, "-dr", "--no-show-raw-insn", *objects],
                             check=True, capture_output=True, text=True).stdout
    calls, pointers = collections.defaultdict(set), set()
    here, function, direct, jumps, by_pointer = "", "", None, False, False

    def end_of_instruction():
        if direct:
            calls[function].add((here, direct))
        if by_pointer:
            pointers.add(function)

    for line in listing.splitlines():
        if moved := re.match(r"\s+[0-9a-f]+: R_(\S+)\s+([^\s+-]+)(?:([+-])0x([0-9a-f]+))?", line):
            if not jumps:
                continue
            target = moved[2]
            if target.startswith(".text"):  # a local one: x86 counts from the end of the instruction
                offset = int(moved[4] or "0", 16) * (-1 if moved[3] == "-" else 1)
                target = at.get((here, target, offset + 4), at.get((here, target, offset), ""))
            direct = target if target and not target.startswith(".") else None
            by_pointer = by_pointer and "GOT" not in moved[1]
            continue
        end_of_instruction()
        direct, jumps, by_pointer = None, False, False
        if header := re.match(r"(\S+):\s+file format", line):
            here = name_of(header[1])
        elif begun := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            function = f"{here}:{begun[1].split('.')[0]}"  # with its cold part
            calls[function] |= set()
        elif done := re.match(r"\s+[0-9a-f]+:\s+(?:notrack |bnd )*(call|j\w+|bl?r?|b\.\w+)\s+(.*)$", line):
            jumps = True
            by_pointer = "*" in done[2] or done[1] in ("blr", "br")
            if place := re.search(r"<([^+>]+)>", done[2]):
                direct = place[1]
    end_of_instruction()
    return calls, pointers


def marked(sources):
    """The functions whose declaration or definition begins with a context."""
    names = set()
    for path in sorted(sources.glob("src/**/*.[ch]")):
        for match in re.finditer(CONTEXT + r".*(?=((?:\n.*)?))", path.read_text(), flags=re.MULTILINE):
            plain = re.sub(r"__attribute__\(\(.*?\)\)(?=\s)", "", match[0] + match[1])
            if found := re.search(r"(\w+)\(", plain):
                names.add(found[1])
    return names


def faults(calls, pointers, home, safe):
    def place(here, name):
        name = name.split(".")[0]
        return f"{here}:{name}" if f"{here}:{name}" in calls else f"{home[name]}:{name}" if name in home else None

    def way_to(function):
        way = [function]
        while came[way[-1]]:
            way.append(came[way[-1]])
        return " < ".join(way)

    known = {*HANDLERS, *(target for targets in BY_POINTER.values() for target in targets)}
    wrong = [f"{function} is named here, and is not there any more" for function in sorted(known - set(calls))]
    came = {handler: None for handler in HANDLERS if handler in calls}
    left = list(came)
    while left:
        function = left.pop()
        here, name = function.split(":")
        if here.endswith(SWITCH):
            continue
        if function in pointers and here not in BY_POINTER:
            wrong.append(f"calls by a pointer, and its file is not in BY_POINTER: {way_to(function)}")
        if name in home and name not in safe and not name.endswith("_sigsafe"):
            wrong.append(f"is reached by a handler, and is not SIGSAFE or INSIDE: {way_to(function)}")
        for other, called in sorted(calls[function]):
            target = place(other, called)
            if target is None and called not in ALLOWED and not TOOLS.match(called):
                wrong.append(f"{called} is not async-signal-safe: {way_to(function)}")
            elif target and target not in came and target not in NEVER:
                came[target] = function
                left.append(target)
        for target in BY_POINTER.get(here, []) if function in pointers else []:
            if target in calls and target not in came:
                came[target] = function
                left.append(target)
    return wrong, len(came)


def main():
    sources, objdump, objects = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    at, home = functions(objdump, objects)
    calls, pointers = calls_of(objdump, objects, at)
    wrong, count = faults(calls, pointers, home, marked(sources))
    print("\n".join(wrong) if wrong else f"{count} functions are reached by handlers, each safe there")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
