// SPDX-License-Identifier: Apache-2.0
//! `thrum_suspend_until` and `thrum_resume` (`src/sched/suspend.c`), as far as the permit goes: the waiting itself is the test's.

use loom::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

#[derive(Clone, Copy, PartialEq)]
pub enum Weak {
    Nothing,
    /// a resume that finds the permit given already goes on without writing it
    EarlyReturn,
    /// what was given is taken back by a plain store
    PlainTakeBack,
}

const NONE: usize = 0;
const GIVEN: usize = 1;
const SUSPENDED: usize = 2;

pub struct Permit {
    word: AtomicUsize,
    weak: Weak,
}

impl Permit {
    pub fn new(weak: Weak) -> Permit {
        Permit { word: AtomicUsize::new(NONE), weak }
    }

    /// True: the caller waits, until it is not `suspended` any more.
    pub fn suspend(&self) -> bool {
        if self.word.compare_exchange(NONE, SUSPENDED, AcqRel, Acquire).is_ok() {
            return true;
        }
        if self.weak == Weak::PlainTakeBack {
            self.word.store(NONE, Relaxed);
        } else {
            self.word.swap(NONE, AcqRel);
        }
        false
    }

    pub fn suspended(&self) -> bool {
        self.word.load(Relaxed) == SUSPENDED
    }

    /// The deadline, or who cancels. True: that is what ends the wait.
    pub fn give_up(&self) -> bool {
        self.word.compare_exchange(SUSPENDED, NONE, AcqRel, Acquire).is_ok()
    }

    /// Without waiting. True: there was one.
    pub fn take(&self) -> bool {
        self.word.compare_exchange(GIVEN, NONE, AcqRel, Acquire).is_ok()
    }

    /// True: that is what ends the wait.
    pub fn resume(&self) -> bool {
        let mut permit = self.word.load(Relaxed);
        loop {
            if self.weak == Weak::EarlyReturn && permit == GIVEN {
                return false;
            }
            let next = if permit == SUSPENDED { NONE } else { GIVEN };
            match self.word.compare_exchange(permit, next, AcqRel, Acquire) {
                Ok(_) => return next == NONE,
                Err(now) => permit = now,
            }
        }
    }
}
