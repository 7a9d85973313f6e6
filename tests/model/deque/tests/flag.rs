// SPDX-License-Identifier: Apache-2.0
//! What each setter wrote before is seen by the thread that took the flag, or the flag is set still. `weak_...`: with one
//! thing taken away it must come out that something is neither seen nor told of.

use std::panic::{catch_unwind, AssertUnwindSafe};

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::sync::Arc;
use loom::thread;
use thrum_model_deque::flag::{Flag, Weak};

const SETTERS: usize = 2;

fn search(weak: Weak) {
    loom::model(move || {
        let flag = Arc::new(Flag::new(weak));
        let written: Arc<Vec<AtomicUsize>> = Arc::new((0..SETTERS).map(|_| AtomicUsize::new(0)).collect());
        let setters: Vec<_> = (0..SETTERS)
            .map(|i| {
                let (flag, written) = (flag.clone(), written.clone());
                thread::spawn(move || {
                    written[i].store(1, Relaxed);
                    flag.set();
                })
            })
            .collect();
        let was_set = flag.take();
        let seen: Vec<bool> = written.iter().map(|word| was_set && word.load(Relaxed) == 1).collect();
        for setter in setters {
            setter.join().unwrap();
        }
        assert!(flag.is_set() || seen.iter().all(|seen| *seen), "something is not seen, and will not be");
    });
}

fn is_found_out(weak: Weak) {
    assert!(catch_unwind(AssertUnwindSafe(|| search(weak))).is_err());
}

#[test]
fn each_is_seen() {
    search(Weak::Nothing);
}

#[test]
fn weak_plain_set() {
    is_found_out(Weak::PlainSet);
}

#[test]
fn weak_relaxed_take() {
    is_found_out(Weak::RelaxedTake);
}
