// SPDX-License-Identifier: Apache-2.0
//! `src/sched/pool/deque.{h,c}`.
//!
//! membarrier(2) is a full fence on each CPU that runs a thread of this process, at some moment while the call lasts.
//! Loom has no such thing, so the owner takes part: between any two of its operations it calls `gap`, a
//! read-modify-write of a word that the caller of membarrier read-modify-writes as well. In each execution the caller's
//! comes between two gaps: all that the owner did before the first of them is then visible to the caller, and all that
//! the caller did before is visible to the owner after the second. For the caller's own part there is a fence. Gaps
//! order nothing else: nobody but membarrier touches the word.
//!
//! By C17 (7.17.3, C11 5.1.2.4) a thread's later stores to a word, relaxed ones too, belong to the release sequence of
//! its release store there: a thief that reads a tail which pop has lowered still sees the slots that were pushed below.
//! C++20 has given that up, and loom has never had it. Here push has a release fence in its place, after which loom lets
//! relaxed stores carry what came before the fence; no other word that thieves acquire is stored relaxed by the owner.
//! `release_sequences: false` is C++20.

use loom::cell::Cell;
use loom::sync::atomic::{
    fence, AtomicIsize, AtomicUsize,
    Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst},
};

use crate::{GIVEN_BACK, NULL};

/// What is different from the code. `Default` is the code.
#[derive(Clone, Copy)]
pub struct Weak {
    pub thief_fence: bool,
    pub owner_fence: bool,
    pub membarrier: bool,
    /// pop reads `shared` after it has lowered tail, not before
    pub shared_after_tail: bool,
    /// the owner goes back to `shared == 0` only when no thief is at work
    pub calm_takes_changing: bool,
    pub release_sequences: bool,
    pub push_tail: Ordering,
    /// both of pop's stores to tail
    pub pop_tail: Ordering,
    pub grow_ring: Ordering,
    pub steal_tail: Ordering,
    /// of one entry that is left: by cas, as thieves do
    pub last_by_cas: bool,
    /// the ring goes back to the first one only when nothing is left
    pub shrink_when_empty: bool,
}

impl Default for Weak {
    fn default() -> Weak {
        Weak {
            thief_fence: true,
            owner_fence: true,
            membarrier: true,
            shared_after_tail: true,
            calm_takes_changing: true,
            release_sequences: true,
            push_tail: Release,
            pop_tail: Relaxed,
            grow_ring: Release,
            steal_tail: Acquire,
            last_by_cas: true,
            shrink_when_empty: true,
        }
    }
}

/// DEQUE_SIZE_AT_FIRST and DEQUE_CALM, so small that the model comes to the edges.
const SIZE_AT_FIRST: isize = 2;
const CALM: isize = 1;
const RINGS: usize = 3;

/// Of twice the size of the one before it. All are there from the beginning; `deque.ring` says which is in use.
struct Ring {
    mask: isize,
    slots: Vec<AtomicUsize>,
}

pub struct Deque {
    weak: Weak,
    tail: AtomicIsize,
    limit: Cell<isize>,
    ring: AtomicUsize,
    calm_head: Cell<isize>,
    calm: Cell<isize>,
    head: AtomicIsize,
    shared: AtomicUsize,
    changing: AtomicUsize,
    always_shared: bool,
    rings: Vec<Ring>,
    barrier: AtomicUsize,
}

// limit, calm_head and calm are the owner's; loom checks that.
unsafe impl Sync for Deque {}

impl Deque {
    pub fn new(fenced: bool, weak: Weak) -> Deque {
        let ring = |i| {
            let size = SIZE_AT_FIRST << i;
            Ring { mask: size - 1, slots: (0..size).map(|_| AtomicUsize::new(NULL)).collect() }
        };
        Deque {
            weak,
            tail: AtomicIsize::new(0),
            limit: Cell::new(SIZE_AT_FIRST),
            ring: AtomicUsize::new(0),
            calm_head: Cell::new(0),
            calm: Cell::new(0),
            head: AtomicIsize::new(0),
            shared: AtomicUsize::new(fenced as usize),
            changing: AtomicUsize::new(0),
            always_shared: fenced,
            rings: (0..RINGS).map(ring).collect(),
            barrier: AtomicUsize::new(0),
        }
    }

    fn gap(&self) {
        if !self.always_shared {
            self.barrier.fetch_add(1, AcqRel);
        }
    }

    fn membarrier_expedited(&self) {
        if self.weak.membarrier {
            self.barrier.fetch_add(1, AcqRel);
            fence(SeqCst);
        }
    }

    fn slot<'a>(ring: &'a Ring, i: isize) -> &'a AtomicUsize {
        &ring.slots[(i & ring.mask) as usize]
    }

    /// The owner's own view of it.
    fn owners_ring(&self) -> &Ring {
        &self.rings[self.ring.load(Relaxed)]
    }

    // --- the owner ---

    pub fn push(&self, unit: usize) {
        let tail = self.tail.load(Relaxed);
        if tail >= self.limit.get() {
            return self.push_slow(unit);
        }
        Self::slot(self.owners_ring(), tail).store(unit, Relaxed);
        self.gap();
        if self.weak.release_sequences && self.weak.push_tail == Release {
            fence(Release);
        }
        self.tail.store(tail + 1, self.weak.push_tail);
        self.gap();
    }

    fn push_slow(&self, unit: usize) {
        let tail = self.tail.load(Relaxed);
        let head = self.head.load(Acquire);
        let mut ring = self.owners_ring();
        if tail - head > ring.mask {
            let number = self.ring.load(Relaxed) + 1;
            let larger = &self.rings[number];
            for i in head..tail {
                Self::slot(larger, i).store(Self::slot(ring, i).load(Relaxed), Relaxed);
            }
            self.ring.store(number, self.weak.grow_ring);
            ring = larger;
        }
        self.limit.set(head + ring.mask + 1);
        self.push(unit)
    }

    fn look_for_thieves(&self) {
        let head = self.head.load(Relaxed);
        if head != self.calm_head.get() {
            self.calm_head.set(head);
            self.calm.set(CALM);
            return;
        }
        self.calm.set(self.calm.get() - 1);
        if self.calm.get() > 0 || self.always_shared {
            return;
        }
        let nobody =
            !self.weak.calm_takes_changing || self.changing.compare_exchange(0, 1, Acquire, Acquire).is_ok();
        if nobody {
            self.gap();
            self.shared.store(0, Relaxed);
            self.gap();
            if self.weak.calm_takes_changing {
                self.changing.store(0, Release);
            }
        }
    }

    pub fn pop(&self) -> usize {
        let last = self.tail.load(Relaxed) - 1;
        if last < self.head.load(Relaxed) {
            return NULL;
        }
        let early = self.shared.load(Relaxed);
        self.gap();
        self.tail.store(last, self.weak.pop_tail);
        self.gap();
        let shared = if self.weak.shared_after_tail { self.shared.load(Relaxed) } else { early };
        self.gap();
        if shared != 0 {
            return self.pop_shared(last);
        }
        Self::slot(self.owners_ring(), last).load(Relaxed)
    }

    fn pop_shared(&self, last: isize) -> usize {
        if self.weak.owner_fence {
            fence(SeqCst);
        }
        self.look_for_thieves();
        let head = self.head.load(Relaxed);
        let mut unit = NULL;
        if head <= last {
            unit = Self::slot(self.owners_ring(), last).load(Relaxed);
            if head < last {
                return unit;
            }
            self.gap();
            if !self.weak.last_by_cas {
                self.head.store(head + 1, SeqCst);
                self.calm_head.set(self.calm_head.get() + 1);
            } else if self.head.compare_exchange(head, head + 1, SeqCst, Relaxed).is_err() {
                unit = NULL;
            } else {
                self.calm_head.set(self.calm_head.get() + 1);
            }
        }
        self.gap();
        self.tail.store(last + 1, self.weak.pop_tail);
        self.gap();
        unit
    }

    /// The oldest, by the owner.
    pub fn pop_oldest(&self) -> usize {
        let head = self.head.load(Acquire);
        if head >= self.tail.load(Relaxed) {
            return NULL;
        }
        let unit = Self::slot(self.owners_ring(), head).load(Relaxed);
        self.gap();
        if self.head.compare_exchange(head, head + 1, SeqCst, Relaxed).is_err() {
            return NULL;
        }
        self.calm_head.set(self.calm_head.get() + 1);
        unit
    }

    /// What the kernel takes from the larger rings is 0, as if nobody had written it.
    pub fn shrink(&self) {
        let head = self.head.load(Acquire);
        if self.tail.load(Relaxed) > head && self.weak.shrink_when_empty {
            return;
        }
        self.ring.store(0, Release);
        self.limit.set(head + self.rings[0].mask + 1);
        for slot in self.rings[1..].iter().flat_map(|ring| &ring.slots) {
            slot.store(GIVEN_BACK, Relaxed);
        }
    }

    // --- thieves ---

    fn take_oldest(&self) -> usize {
        let head = self.head.load(Acquire);
        if self.weak.thief_fence {
            fence(SeqCst);
        }
        if head >= self.tail.load(self.weak.steal_tail) {
            return NULL;
        }
        let ring = &self.rings[self.ring.load(Acquire)];
        let unit = Self::slot(ring, head).load(Relaxed);
        match self.head.compare_exchange(head, head + 1, SeqCst, Relaxed) {
            Ok(_) => unit,
            Err(_) => NULL,
        }
    }

    pub fn steal(&self) -> Option<usize> {
        if self.always_shared {
            return Some(self.take_oldest()).filter(|unit| *unit != NULL);
        }
        if self.changing.compare_exchange(0, 1, Acquire, Acquire).is_err() {
            return None;
        }
        if self.shared.load(Relaxed) == 0 {
            self.shared.store(1, Relaxed);
            self.membarrier_expedited();
        }
        let unit = self.take_oldest();
        self.changing.store(0, Release);
        Some(unit).filter(|unit| *unit != NULL)
    }
}
