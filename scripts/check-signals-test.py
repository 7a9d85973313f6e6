#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ctest: check-signals.py finds what a signal handler must not reach. Calls are planted in those of the real objects.

Usage: check-signals-test.py SOURCES OBJDUMP OBJECT...
"""

import copy
import importlib.util
import pathlib
import sys

spec = importlib.util.spec_from_file_location("check", pathlib.Path(__file__).with_name("check-signals.py"))
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)


def main():
    sources, objdump, objects = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    at, home = check.functions(objdump, objects)
    calls, pointers = check.calls_of(objdump, objects, at)
    safe = check.marked(sources)
    failed = []

    def finds(what, caller=None, called=None, by_pointer=None, safe=safe):
        planted = copy.deepcopy(calls)
        if caller:
            planted[caller].add((caller.split(":")[0], called))
        wrong, _ = check.faults(planted, pointers | ({by_pointer} if by_pointer else set()), home, safe)
        if not any(what in line for line in wrong) if what else wrong:
            failed.append(f"{caller or by_pointer} -> {called}: {wrong}, not '{what}'")

    finds(None)
    finds("malloc is not async-signal-safe: preempt/handler:on_signal", "preempt/handler:on_signal", "malloc")
    finds("pthread_create is not async-signal-safe: sched/trim:due", "sched/trim:due", "pthread_create")
    finds("is not SIGSAFE or INSIDE: runtime/init:thrum_fini", "preempt/tick:tick_resume", "thrum_fini")
    finds("is not SIGSAFE or INSIDE: preempt/tick:tick_resume", safe=safe - {"tick_resume"})
    finds("its file is not in BY_POINTER: base/text:text_add", by_pointer="base/text:text_add")
    print("\n".join(failed) if failed else "each of them is found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
