// SPDX-License-Identifier: Apache-2.0
//! A flag that several threads set and one takes back before it looks: `asked` of `src/preempt/relief.c`, `runtime.orphans`.

use loom::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

#[derive(Clone, Copy, PartialEq)]
pub enum Weak {
    Nothing,
    /// it is set by a store, which ends the release sequence of a setter before
    PlainSet,
    /// it is taken back without acquire
    RelaxedTake,
}

pub struct Flag {
    word: AtomicUsize,
    weak: Weak,
}

impl Flag {
    pub fn new(weak: Weak) -> Flag {
        Flag { word: AtomicUsize::new(0), weak }
    }

    /// `relief_wake`, without the wake-up.
    pub fn set(&self) {
        if self.weak == Weak::PlainSet {
            self.word.store(1, Release);
        } else {
            self.word.swap(1, Release);
        }
    }

    /// `wait_until_asked`, without the wait.
    pub fn take(&self) -> bool {
        let order = if self.weak == Weak::RelaxedTake { Relaxed } else { Acquire };
        self.word.swap(0, order) != 0
    }

    pub fn is_set(&self) -> bool {
        self.word.load(Relaxed) != 0
    }
}
