#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ctest: check-pairings.py finds atomics that do not say what they pair with. Small files are made, and the sources planted in.

Usage: check-pairings-test.py SOURCES
"""

import importlib.util
import pathlib
import sys
import tempfile
import unittest

spec = importlib.util.spec_from_file_location("check", pathlib.Path(__file__).with_name("check-pairings.py"))
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)

SOURCES = pathlib.Path(sys.argv[1])
HEADER = """struct ring {
    uint32_t told; /* the store of 1 pairs with the loads */
    uint32_t untold; /* read by any thread */
    /* By the owner.
     * Its changes pair with the thieves' loads. */
    _Alignas(64) uint32_t head, tail;
};
struct other_thing {
    uint32_t told;
};
"""


def function(*lines):
    return "".join(f"    {line}\n" for line in ("first();", *lines, "third();", "fourth();"))


class Check(unittest.TestCase):
    def faults(self, body, before="void f(void)", includes='#include "sched/ring.h"\n'):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "src/sched").mkdir(parents=True)
            (root / "src/sched/ring.h").write_text(HEADER)
            (root / "src/sched/a.c").write_text(f"{includes}{before} {{\n{body}}}\n")
            return check.Tree(root).faults("src/sched/a.c")

    def accepted(self, *lines, **more):
        self.assertEqual(self.faults(function(*lines), **more), [])

    def refused(self, *lines, count=1, **more):
        found = self.faults(function(*lines), **more)
        self.assertEqual(len(found), count, found)
        for line in found:
            self.assertRegex(line, r"^src/sched/a\.c:[0-9]+: ")

    def test_each_operation(self):
        for operation in ("load_acquire", "load_seq_cst", "store_release", "exchange_acq_rel", "fetch_or_acquire",
                          "fetch_sub_release", "cas_seq_cst", "fetch_and_acq_rel"):
            with self.subTest(operation=operation):
                self.refused(f"{operation}(&word, 1);")
                self.accepted(f"{operation}(&word, 1); /* pairs with the load in g */")
        for fence in ("fence_seq_cst", "fence_compiler", "fence_rare", "fence_frequent"):
            with self.subTest(fence=fence):
                self.refused(f"{fence}(fenced);")
                self.refused(f"{fence}(); /* after the push */")
                self.accepted(f"{fence}(); /* pairs with that of g */")
        self.accepted("load_relaxed(&word);", "cas_relaxed(&word, &seen, 1);", "exchange_relaxed(&word, 1);")

    def test_where_the_comment_is(self):
        self.accepted("/* Pairs with g. */", "store_release(&word, 1);")
        self.accepted("/* It is there:", " * this pairs with g. */", "store_release(&word, 1);")
        self.accepted("// pairs with g", "store_release(&word, 1);")
        self.accepted("call(one,", "     load_acquire(&word)); /* pairs with g */")
        self.accepted("if (load_acquire(&word))", "    return; /* pairs with g */")
        self.refused("/* Pairs with g. */", "second();", "store_release(&word, 1);")
        self.refused("/* Pairs with g. */", "", "store_release(&word, 1);")
        self.refused("second(); /* pairs with g */", "store_release(&word, 1);")
        self.refused("store_release(&word, 1);", "/* pairs with g */")
        self.refused('say("pairs with g"), store_release(&word, 1);')

    def test_the_next_ones(self):
        for count, word in enumerate(("", " two", " three", " four"), 1):
            for planted in (count, count + 1):
                with self.subTest(said=count, planted=planted):
                    lines = (f"store_release(&word, 1); /* this and the next{word} pair with g */",
                             *["load_acquire(&word);"] * planted)
                    self.refused(*lines, count=1) if planted > count else self.accepted(*lines)
        two = function("store_release(&word, 1); /* this and the next pair with g */") + "}\nvoid g(void) {\n" + \
            function("load_acquire(&word);")
        self.assertEqual(len(self.faults(two)), 1)

    def test_above_a_short_function(self):
        self.assertEqual(self.faults("    store_release(&word, 1);\n", before="/* Pairs with g. */\nvoid f(void)"), [])
        self.assertEqual(len(self.faults("    store_release(&word, 1);\n")), 1)
        self.refused("store_release(&word, 1);", before="/* Pairs with g. */\nvoid f(void)")

    def test_at_the_field(self):
        self.accepted("store_release(&ring->told, 1);")
        self.accepted("store_release(&self->rings[i].told, 1);")
        self.accepted("load_acquire(&ring->head);", "load_acquire(&ring->tail);")
        self.refused("store_release(&ring->untold, 1);")
        self.refused("store_release(&thing->told, 1);")  # another struct's
        self.refused("store_release(&ring->told, 1);", includes="")  # not seen from here
        self.accepted("store_release(&state, 1);", includes="static uint32_t state; /* pairs with g */\n")
        self.refused("store_release(&state, 1);", includes="static uint32_t state; /* by f */\n")

    def test_several_in_a_line(self):
        self.refused("swap(load_acquire(&one), load_acquire(&two));", count=2)
        self.refused("swap(load_acquire(&ring->told), load_acquire(&two));")

    def test_planted_in_the_sources(self):
        tree = check.Tree(SOURCES)
        for path in ("src/sched/wake.c", "src/kthread/join.c", "cache/tree.c", "stat/waits.c", "abt/mutex.c"):
            with self.subTest(path=path):
                self.assertEqual(tree.faults(path), [])
                text = (SOURCES / path).read_text()
                planted = check.Tree(SOURCES)
                planted.sources[path] = check.Source(text + "\nvoid f(void) {\n    store_release(&planted, 1);\n}\n")
                self.assertEqual(len(planted.faults(path)), 1)
                bare = check.Tree(SOURCES)
                bare.sources[path] = check.Source(check.PAIRS.sub("goes", text))
                self.assertNotEqual(bare.faults(path), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
