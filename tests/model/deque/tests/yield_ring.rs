// SPDX-License-Identifier: Apache-2.0
//! The ring of those that yielded: no unit is lost, none is taken twice, they come out oldest first, and whoever takes
//! one sees what was written before it was pushed.

use std::panic::{catch_unwind, AssertUnwindSafe};

use loom::sync::atomic::Ordering::Relaxed;
use loom::sync::Arc;
use loom::thread;
use thrum_model_deque::yield_ring::{Weak, YieldRing};
use thrum_model_deque::{Units, NULL};

/// The owner pushes `count` into a ring of two, and pops when it is full; thieves pop so often, each.
fn play(count: usize, thieves: usize, pops: usize, weak: Weak) {
    let units = Arc::new(Units::new(count));
    let ring = Arc::new(YieldRing::new(weak));
    let thieves: Vec<_> = (0..thieves)
        .map(|_| {
            let (units, ring) = (units.clone(), ring.clone());
            thread::spawn(move || {
                let mut newest = NULL;
                for _ in 0..pops {
                    let unit = ring.pop();
                    if unit != NULL {
                        assert!(unit > newest, "{unit} after {newest}");
                        newest = unit;
                        units.take(unit);
                    }
                }
            })
        })
        .collect();
    let pop = || {
        let unit = ring.pop();
        if unit != NULL {
            units.take(unit);
        }
        unit
    };
    for unit in 1..=count {
        units.make(unit);
        while !ring.push(unit) {
            pop();
        }
    }
    pop();
    for thief in thieves {
        thief.join().unwrap();
    }
    while pop() != NULL {}
    units.all_were_taken();
}

fn search(count: usize, thieves: usize, pops: usize, weak: Weak) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || play(count, thieves, pops, weak));
}

fn must_be_found_out(wrong: &str, weak: Weak) {
    let found =
        catch_unwind(AssertUnwindSafe(|| search(4, 1, 2, weak))).expect_err("the search did not find it");
    let said = found.downcast_ref::<String>().expect("a message");
    assert!(said.contains(wrong), "it found something else: {said}");
}

#[test]
fn one_thief() {
    search(4, 1, 2, Weak::default());
}

#[test]
fn two_thieves() {
    search(3, 2, 1, Weak::default());
}

#[test]
fn weak_relaxed_publication() {
    must_be_found_out(" after ", Weak { push_tail: Relaxed, ..Weak::default() });
}

#[test]
fn weak_relaxed_look_at_tail() {
    must_be_found_out(" after ", Weak { pop_tail: Relaxed, ..Weak::default() });
}

#[test]
fn weak_push_without_looking_at_head() {
    must_be_found_out("taken twice", Weak { push_looks_at_head: false, ..Weak::default() });
}

#[test]
fn weak_pop_without_cas() {
    must_be_found_out("taken twice", Weak { pop_by_cas: false, ..Weak::default() });
}
