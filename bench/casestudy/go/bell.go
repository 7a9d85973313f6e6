// SPDX-License-Identifier: Apache-2.0

package main

import (
	"container/heap"
	"sync"
	"time"
)

// A goroutine that rings bells when it is time; what ../tasks.cpp has a kernel thread for.
type bell struct {
	end  time.Time
	mu   sync.Mutex
	rung *sync.Cond
	over bool
}

type queue []*bell

func (q queue) Len() int            { return len(q) }
func (q queue) Less(i, j int) bool  { return q[i].end.Before(q[j].end) }
func (q queue) Swap(i, j int)       { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x interface{}) { *q = append(*q, x.(*bell)) }
func (q *queue) Pop() interface{} {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

var (
	bells     queue
	bellsMu   sync.Mutex
	earlier   = make(chan struct{}, 1) // there is a new first one
	clockOnce sync.Once
)

func ringDue() (next time.Duration) {
	bellsMu.Lock()
	defer bellsMu.Unlock()
	for len(bells) > 0 {
		if next = time.Until(bells[0].end); next > 0 {
			return next
		}
		b := heap.Pop(&bells).(*bell)
		b.mu.Lock()
		b.over = true
		b.rung.Signal()
		b.mu.Unlock()
	}
	return time.Hour
}

func tick() {
	for {
		timer := time.NewTimer(ringDue())
		select {
		case <-timer.C:
		case <-earlier:
			timer.Stop()
		}
	}
}

func waitForBell(end time.Time) {
	clockOnce.Do(func() { go tick() })
	b := &bell{end: end}
	b.rung = sync.NewCond(&b.mu)
	bellsMu.Lock()
	heap.Push(&bells, b)
	first := bells[0] == b
	bellsMu.Unlock()
	if first {
		select {
		case earlier <- struct{}{}:
		default:
		}
	}
	b.mu.Lock()
	for !b.over {
		b.rung.Wait()
	}
	b.mu.Unlock()
}
