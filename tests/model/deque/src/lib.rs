// SPDX-License-Identifier: Apache-2.0
//! The two run queues of a worker, suspending, and flags that several threads set, as models for
//! [loom](https://docs.rs/loom), which tries every interleaving of a few threads together with every value that a load may
//! return by C11's memory model. The functions mirror those of the same names in `src/sched/pool/deque.{h,c}`,
//! `yield_ring.h`, `suspend.c` and `src/preempt/relief.c`, one atomic operation for one, with the same orders; who changes
//! one there changes it here (`../check-ported.sh`). `tests/` runs them, and takes orders and fences away one by one: each
//! of those variants must be found out (README.md).

pub mod deque;
pub mod flag;
pub mod permit;
pub mod yield_ring;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What is queued. Its maker writes `content` before it is pushed, who takes it reads that: loom reports it if nothing
/// orders the two. Who takes it twice is caught by `taken`.
pub struct Units {
    content: Vec<UnsafeCell<usize>>,
    taken: Vec<AtomicUsize>,
}

/// Units have numbers from 1 on; this is none.
pub const NULL: usize = 0;
/// In a slot whose memory went back to the kernel.
pub const GIVEN_BACK: usize = usize::MAX;

impl Units {
    pub fn new(count: usize) -> Units {
        Units {
            content: (0..=count).map(|_| UnsafeCell::new(0)).collect(),
            taken: (0..=count).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    pub fn make(&self, unit: usize) -> usize {
        self.content[unit].with_mut(|content| unsafe { *content = unit });
        unit
    }

    pub fn take(&self, unit: usize) {
        assert!(unit != NULL, "took a slot that nothing was put in");
        assert!(unit != GIVEN_BACK, "took a slot that was given back");
        let content = self.content[unit].with(|content| unsafe { *content });
        assert!(content == unit, "took a unit that is not made yet");
        assert!(self.taken[unit].fetch_add(1, Relaxed) == 0, "unit {unit} was taken twice");
    }

    pub fn all_were_taken(&self) {
        for (unit, taken) in self.taken.iter().enumerate().skip(1) {
            assert!(taken.load(Relaxed) == 1, "unit {unit} was lost");
        }
    }
}
