// SPDX-License-Identifier: Apache-2.0

// What goroutines that wait often, or sleep, get beside some that compute: the rows of ../../fairness.cpp.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

var stop atomic.Bool

//go:noinline
func mix(steps int) int {
	sum := 0
	for i := 0; i < steps; i++ {
		sum += i ^ sum
	}
	return sum
}

const (
	pairSteps = 300
	hogSteps  = 30000
	warmUp    = 100 * time.Millisecond
	sleep     = 5 * time.Millisecond
)

func startHogs(count int, loops *atomic.Int64) {
	for i := 0; i < count; i++ {
		go func() {
			for !stop.Load() {
				mix(hogSteps)
				loops.Add(1)
			}
		}()
	}
}

func startPair(kind string, mutex *sync.Mutex, operations *atomic.Int64) {
	there, back, values := make(chan int, 1), make(chan int, 1), make(chan int)
	side := func(act func()) {
		for !stop.Load() {
			mix(pairSteps)
			act()
			operations.Add(1)
		}
	}
	locked := func() { mutex.Lock(); mix(pairSteps); mutex.Unlock() }
	switch kind {
	case "semaphore":
		go side(func() { there <- 1; <-back })
		go side(func() { <-there; back <- 1 })
	case "mutex":
		go side(locked)
		go side(locked)
	default:
		go side(func() { values <- 1 })
		go side(func() { <-values })
	}
}

func fairPairs(kind string, pairs, hogs int, seconds float64) {
	var mutex sync.Mutex
	var operations, loops atomic.Int64
	for i := 0; i < pairs; i++ {
		startPair(kind, &mutex, &operations)
	}
	startHogs(hogs, &loops)
	time.Sleep(warmUp)
	before, loopsBefore, since := operations.Load(), loops.Load(), time.Now()
	time.Sleep(time.Duration(seconds * 1e9))
	passed := time.Since(since).Seconds()
	fmt.Printf("%.0f %.0f\n", float64(operations.Load()-before)/passed, float64(loops.Load()-loopsBefore)/passed)
}

func fairSleepers(sleepers, hogs int, seconds float64) {
	var loops atomic.Int64
	var group sync.WaitGroup
	var all sync.Mutex
	var late []float64
	startHogs(hogs, &loops)
	end := time.Now().Add(time.Duration(seconds * 1e9))
	for i := 0; i < sleepers; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			var own []float64
			for time.Now().Before(end) {
				due := time.Now().Add(sleep)
				time.Sleep(sleep)
				own = append(own, time.Since(due).Seconds()*1e3)
			}
			all.Lock()
			late = append(late, own...)
			all.Unlock()
		}()
	}
	group.Wait()
	fmt.Printf("%.4f %.4f\n", median(late), late[len(late)*99/100])
}

// fairness KIND COUNT HOGS WORKERS SECONDS
func fairness(words []string) {
	count, _ := strconv.Atoi(words[1])
	hogs, _ := strconv.Atoi(words[2])
	workers, _ := strconv.Atoi(words[3])
	seconds, _ := strconv.ParseFloat(words[4], 64)
	runtime.GOMAXPROCS(workers)
	if words[0] == "sleepers" {
		fairSleepers(count, hogs, seconds)
	} else {
		fairPairs(words[0], count, hogs, seconds)
	}
	os.Exit(0)
}
