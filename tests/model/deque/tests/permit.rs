// SPDX-License-Identifier: Apache-2.0
//! Suspending and resuming: what was written before the last resume is seen by who looks before it suspends again, so
//! that it does not wait for ever. `weak_...`: with one thing taken away it must come out that it does.

use std::panic::{catch_unwind, AssertUnwindSafe};

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::sync::Arc;
use loom::thread;
use thrum_model_deque::permit::{Permit, Weak};

fn search(resumes: usize, weak: Weak) {
    loom::model(move || {
        let permit = Arc::new(Permit::new(weak));
        let written = Arc::new(AtomicUsize::new(0));
        let mut writer = {
            let (permit, written) = (permit.clone(), written.clone());
            Some(thread::spawn(move || {
                for i in 1..=resumes {
                    written.store(i, Relaxed);
                    permit.resume();
                }
            }))
        };
        let mut wait_for_writer = || {
            if let Some(writer) = writer.take() {
                writer.join().unwrap();
            }
        };
        while written.load(Relaxed) != resumes {
            if permit.suspend() {
                wait_for_writer();
                assert!(!permit.suspended(), "waits for ever");
            }
        }
        wait_for_writer();
    });
}

fn is_found_out(resumes: usize, weak: Weak) {
    assert!(catch_unwind(AssertUnwindSafe(|| search(resumes, weak))).is_err());
}

#[test]
fn one_resume() {
    search(1, Weak::Nothing);
}

#[test]
fn several_resumes() {
    search(2, Weak::Nothing);
    search(3, Weak::Nothing);
}

/// A deadline and a resume: one of them ends the wait, and a resume that comes too late is there for the next time.
#[test]
fn one_ends_the_wait() {
    loom::model(|| {
        let permit = Arc::new(Permit::new(Weak::Nothing));
        let resumes = {
            let permit = permit.clone();
            thread::spawn(move || permit.resume())
        };
        let times_out = {
            let permit = permit.clone();
            thread::spawn(move || permit.give_up())
        };
        let waits = permit.suspend();
        let (resumed, gave_up) = (resumes.join().unwrap(), times_out.join().unwrap());
        assert!(usize::from(resumed) + usize::from(gave_up) == usize::from(waits));
        assert!(permit.take() == gave_up);
        assert!(!permit.take());
    });
}

#[test]
fn weak_early_return() {
    is_found_out(2, Weak::EarlyReturn);
}

#[test]
fn weak_plain_take_back() {
    is_found_out(3, Weak::PlainTakeBack);
}
