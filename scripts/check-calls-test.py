#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ctest (build.calls.faults): check-calls.py finds what is against the order. libthrum's own objects are read, which are in order,
and one thing is changed at a time.

Usage: check-calls-test.py SOURCES NM OBJECT...
"""

import importlib.util
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
spec = importlib.util.spec_from_file_location("check_calls", HERE / "check-calls.py")
calls = importlib.util.module_from_spec(spec)
spec.loader.exec_module(calls)

SOURCES, NM, OBJECTS = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]


class Faults(unittest.TestCase):
    def setUp(self):
        self.defined, self.needed = calls.symbols(NM, OBJECTS)
        self.upward = calls.declared(SOURCES / calls.UPWARD)

    def faults(self, **options):
        return calls.faults(self.defined, self.needed, self.upward, **options)

    def one_fault(self, pattern, **options):
        found = self.faults(**options)
        self.assertTrue(found, "nothing was found")
        self.assertRegex(found[0], pattern)
        return found

    def objects_in(self, folder):
        return [name for name in sorted(set(self.defined.values())) if calls.folder(name) == folder]

    def add_need(self, name, other):
        """The object `name` needs a new symbol of the object `other`."""
        symbol = f"new_{len(self.defined)}"
        self.defined[symbol] = other
        self.needed[name].add(symbol)
        return symbol

    def test_nothing_as_it_is(self):
        self.assertEqual(self.faults(), [])

    def test_each_name_taken_out(self):
        names = self.upward & set(self.defined)
        self.assertTrue(names)
        for name in sorted(names):
            with self.subTest(name=name):
                self.upward.discard(name)
                self.one_fault(rf"sched/\S+ needs {name} of .*, which is above it")
                self.upward.add(name)

    def test_a_name_too_many(self):
        name = next(symbol for symbol, place in sorted(self.defined.items()) if calls.folder(place) == "runtime"
                    and symbol not in self.upward)
        self.upward.add(name)
        self.one_fault(rf"src/sched needs {name} of no folder above it any more")

    def test_a_name_in_a_comment_alone(self):
        name = sorted(self.upward & set(self.defined))[0]
        header = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "upward.h"
        header.write_text(f"/* {name} */ // {name}\n#include \"{name}.h\"\nint other(void);\n")
        self.assertEqual(calls.declared(header), {"int", "other", "void"})

    def test_a_new_call_upwards(self):
        for low, high in zip(calls.ORDER, calls.ORDER[1:]):
            with self.subTest(low=low, high=high):
                self.setUp()
                if not self.objects_in(low) or not self.objects_in(high):
                    continue  # kthread is not in libthrum
                symbol = self.add_need(self.objects_in(low)[0], self.objects_in(high)[0])
                self.one_fault(rf"/{low}/\S+ needs {symbol} of \S+/{high}/\S+, which is above it")

    def test_a_larger_cycle(self):
        objects = self.objects_in("sync")[:calls.LARGEST + 1]
        for name, other in zip(objects, objects[1:] + objects[:1]):
            self.add_need(name, other)
        found = self.one_fault("src/sync: these need each other: ")
        for name in objects:
            self.assertIn(name.split("/")[-1], found[0])

    def test_a_smaller_limit(self):
        first, second = self.objects_in("os")[:2]
        self.add_need(first, second)
        self.add_need(second, first)
        self.assertEqual(self.faults(), [])
        self.assertTrue(any(line.startswith("src/os: these need each other: ") for line in self.faults(largest=1)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
