// SPDX-License-Identifier: Apache-2.0
//! `src/sched/pool/yield_ring.h`.

use loom::sync::atomic::{
    AtomicIsize, AtomicUsize,
    Ordering::{self, AcqRel, Acquire, Relaxed, Release},
};

use crate::NULL;

/// What is different from the code. `Default` is the code.
///
/// That push reads head by an acquire cannot be checked here: what would go wrong without is that a thief reads from its
/// slot what is written there later, and loom's loads only ever see what has been stored already.
#[derive(Clone, Copy)]
pub struct Weak {
    pub push_tail: Ordering,
    pub pop_tail: Ordering,
    pub push_looks_at_head: bool,
    pub pop_by_cas: bool,
}

impl Default for Weak {
    fn default() -> Weak {
        Weak { push_tail: Release, pop_tail: Acquire, push_looks_at_head: true, pop_by_cas: true }
    }
}

/// YIELD_RING_SIZE, so small that the model comes to the edge.
const SIZE: isize = 2;

pub struct YieldRing {
    weak: Weak,
    tail: AtomicIsize,
    head: AtomicIsize,
    slots: Vec<AtomicUsize>,
}

impl YieldRing {
    pub fn new(weak: Weak) -> YieldRing {
        YieldRing {
            weak,
            tail: AtomicIsize::new(0),
            head: AtomicIsize::new(0),
            slots: (0..SIZE).map(|_| AtomicUsize::new(NULL)).collect(),
        }
    }

    /// False: full.
    pub fn push(&self, unit: usize) -> bool {
        let tail = self.tail.load(Relaxed);
        if self.weak.push_looks_at_head && tail - self.head.load(Acquire) >= SIZE {
            return false;
        }
        self.slots[(tail % SIZE) as usize].store(unit, Relaxed);
        self.tail.store(tail + 1, self.weak.push_tail);
        true
    }

    pub fn pop(&self) -> usize {
        let mut head = self.head.load(Acquire);
        while head < self.tail.load(self.weak.pop_tail) {
            let unit = self.slots[(head % SIZE) as usize].load(Relaxed);
            if !self.weak.pop_by_cas {
                self.head.store(head + 1, Release);
                return unit;
            }
            match self.head.compare_exchange(head, head + 1, AcqRel, Acquire) {
                Ok(_) => return unit,
                Err(now) => head = now,
            }
        }
        NULL
    }
}
