// SPDX-License-Identifier: Apache-2.0
//! The deque: no unit is lost, none is taken twice, and whoever takes one sees what was written before it was pushed.
//! `weak_...`: with one thing taken away it must come out that this goes wrong.

use std::panic::{catch_unwind, AssertUnwindSafe};

use loom::sync::atomic::Ordering::{Relaxed, Release};
use loom::sync::Arc;
use loom::thread;
use thrum_model_deque::deque::{Deque, Weak};
use thrum_model_deque::{Units, NULL};

/// What the owner does; the thieves steal meanwhile, each so often.
#[derive(Clone, Copy)]
enum Step {
    Push,
    Pop,
    PopOldest,
    Shrink,
}
use Step::{Pop, PopOldest, Push, Shrink};

#[derive(Clone, Copy)]
struct Scene {
    steps: &'static [Step],
    thieves: usize,
    steals: usize,
    fenced: bool,
    /// so many times in one execution a thread is interrupted by another; None: as often as it can be
    preemptions: Option<usize>,
}

fn play(scene: Scene, weak: Weak) {
    let count = scene.steps.iter().filter(|step| matches!(step, Push)).count();
    let units = Arc::new(Units::new(count));
    let deque = Arc::new(Deque::new(scene.fenced, weak));
    let thieves: Vec<_> = (0..scene.thieves)
        .map(|_| {
            let (units, deque) = (units.clone(), deque.clone());
            thread::spawn(move || {
                for _ in 0..scene.steals {
                    if let Some(unit) = deque.steal() {
                        units.take(unit);
                    }
                }
            })
        })
        .collect();
    let take = |unit| {
        if unit != NULL {
            units.take(unit);
        }
        unit
    };
    let mut made = 0;
    for step in scene.steps {
        match step {
            Push => {
                made += 1;
                deque.push(units.make(made));
            }
            Pop => {
                take(deque.pop());
            }
            PopOldest => {
                take(deque.pop_oldest());
            }
            Shrink => deque.shrink(),
        }
    }
    for thief in thieves {
        thief.join().unwrap();
    }
    while take(deque.pop()) != NULL {}
    units.all_were_taken();
}

fn search(scene: Scene, weak: Weak) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = scene.preemptions;
    builder.max_branches = 10_000;
    builder.check(move || play(scene, weak));
}

fn must_be_found_out(wrong: &str, scene: Scene, weak: Weak) {
    let found =
        catch_unwind(AssertUnwindSafe(|| search(scene, weak))).expect_err("the search did not find it");
    let said = found.downcast_ref::<String>().expect("a message");
    assert!(said.contains(wrong), "it found something else: {said}");
}

/// One thief against pops of the last entries: where the fences matter. The thief comes back, so that it meets both
/// modes; CALM is 1, so that the owner goes back from one to the other in between.
const ONE: Scene =
    Scene { steps: &[Push, Push, Pop, Pop], thieves: 1, steals: 2, fenced: false, preemptions: Some(3) };

#[test]
fn one_thief() {
    search(Scene { preemptions: Some(4), ..ONE }, Weak::default());
}

#[test]
fn one_thief_that_comes_often() {
    let steps = &[Push, Push, Pop, Push, Pop, Pop];
    search(Scene { steps, steals: 3, preemptions: Some(2), ..ONE }, Weak::default());
}

#[test]
fn two_thieves() {
    search(Scene { thieves: 2, steals: 1, ..ONE }, Weak::default());
}

/// Three entries do not fit into the first ring.
#[test]
fn the_ring_grows() {
    let steps = &[Push, Push, Push, Pop];
    search(Scene { steps, ..ONE }, Weak::default());
}

#[test]
fn the_ring_is_used_again() {
    let steps = &[Push, Pop, Push, Push, Pop, Push];
    search(Scene { steps, ..ONE }, Weak::default());
}

/// A thief may still be reading the larger ring when its memory goes, or when it is used again.
#[test]
fn the_ring_shrinks() {
    let steps = &[Push, Push, Push, Pop, Pop, Pop, Shrink, Push];
    search(Scene { steps, preemptions: Some(2), ..ONE }, Weak::default());
    search(Scene { steps, fenced: true, preemptions: Some(3), ..ONE }, Weak::default());
}

#[test]
fn the_ring_shrinks_and_grows_again() {
    let steps = &[Push, Push, Push, PopOldest, Pop, Pop, Shrink, Push, Push, Push];
    search(Scene { steps, preemptions: Some(2), ..ONE }, Weak::default());
}

#[test]
fn without_membarrier_one_thief() {
    search(Scene { fenced: true, preemptions: Some(5), ..ONE }, Weak::default());
}

#[test]
fn without_membarrier_two_thieves() {
    search(Scene { fenced: true, thieves: 2, steals: 1, ..ONE }, Weak::default());
}

#[test]
fn the_owner_takes_the_oldest() {
    let steps = &[Push, Push, PopOldest, Pop];
    search(Scene { steps, ..ONE }, Weak::default());
    search(Scene { steps, fenced: true, ..ONE }, Weak::default());
}

/// What C++20 would want.
#[test]
fn pop_releases_too() {
    search(ONE, Weak { release_sequences: false, pop_tail: Release, ..Weak::default() });
}

#[test]
fn weak_no_release_sequences() {
    must_be_found_out("was lost", ONE, Weak { release_sequences: false, ..Weak::default() });
}

#[test]
fn weak_no_membarrier() {
    must_be_found_out("taken twice", ONE, Weak { membarrier: false, ..Weak::default() });
}

#[test]
fn weak_no_thief_fence() {
    must_be_found_out(
        "taken twice",
        Scene { fenced: true, ..ONE },
        Weak { thief_fence: false, ..Weak::default() },
    );
}

#[test]
fn weak_no_owner_fence() {
    must_be_found_out(
        "taken twice",
        Scene { fenced: true, ..ONE },
        Weak { owner_fence: false, ..Weak::default() },
    );
}

/// The same where the mode changes: the thief's first steal sets `shared`, the second one finds it set.
#[test]
fn weak_no_owner_fence_in_shared_mode() {
    must_be_found_out(
        "taken twice",
        Scene { steps: &[Push, Push, Push, Pop, Pop], ..ONE },
        Weak { owner_fence: false, ..Weak::default() },
    );
}

#[test]
fn weak_shared_is_read_first() {
    must_be_found_out("taken twice", ONE, Weak { shared_after_tail: false, ..Weak::default() });
}

#[test]
fn weak_calm_without_changing() {
    must_be_found_out(
        "taken twice",
        Scene { steps: &[Push, Push, Push, Pop, Pop, Pop], ..ONE },
        Weak { calm_takes_changing: false, ..Weak::default() },
    );
}

#[test]
fn weak_relaxed_publication() {
    must_be_found_out("was lost", ONE, Weak { push_tail: Relaxed, ..Weak::default() });
}

#[test]
fn weak_relaxed_publication_without_membarrier() {
    must_be_found_out(
        "was lost",
        Scene { fenced: true, ..ONE },
        Weak { push_tail: Relaxed, ..Weak::default() },
    );
}

#[test]
fn weak_relaxed_look_at_tail() {
    must_be_found_out("was lost", ONE, Weak { steal_tail: Relaxed, ..Weak::default() });
}

#[test]
fn weak_relaxed_growth() {
    must_be_found_out(
        "was lost",
        Scene { steps: &[Push, Push, Push], ..ONE },
        Weak { grow_ring: Relaxed, ..Weak::default() },
    );
}

#[test]
fn weak_shrinks_with_something_in_it() {
    must_be_found_out(
        "taken twice",
        Scene { steps: &[Push, Push, Push, Shrink, Push, Push, Push], ..ONE },
        Weak { shrink_when_empty: false, ..Weak::default() },
    );
}

#[test]
fn weak_last_without_cas() {
    must_be_found_out("taken twice", ONE, Weak { last_by_cas: false, ..Weak::default() });
}
