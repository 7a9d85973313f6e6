// SPDX-License-Identifier: Apache-2.0

// Goroutines: the rows of ../workloads.hpp, which says what each means. A goroutine is always queued, and is joined
// through a sync.WaitGroup.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	fibN    = 27
	skynetN = 1000000
	yields  = 5000
	trips   = 2000
)

var scale float64

func clockNs(clock uintptr) float64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&now)), 0)
	return float64(now.Nano())
}

func wallNs() float64 { return clockNs(1) }
func cpuNs() float64  { return clockNs(2) }

func median(values []float64) float64 {
	sort.Float64s(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func measure(unit func() float64) {
	const round = 15e6
	end := wallNs() + 10*round*scale
	var wall, cpu []float64
	unit()
	for {
		operations, now := 0.0, 0.0
		wallBefore, cpuBefore := wallNs(), cpuNs()
		for now-wallBefore < round*scale {
			operations += unit()
			now = wallNs()
		}
		wall = append(wall, (now-wallBefore)/operations)
		cpu = append(cpu, (cpuNs()-cpuBefore)/operations)
		if len(wall) >= 7 || wallNs() >= end {
			break
		}
	}
	fmt.Printf("ns %.3f %.3f\n", median(wall), median(cpu))
}

func nothing() {}

func compute(ns int64) {
	for end := time.Now().Add(time.Duration(ns)); time.Now().Before(end); {
	}
}

func batch(n int, work func()) float64 {
	var group sync.WaitGroup
	group.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			work()
			group.Done()
		}()
	}
	group.Wait()
	return float64(n)
}

func oneAtATime() float64 {
	for i := 0; i < 1000; i++ {
		batch(1, nothing)
	}
	return 1000
}

var ended int64

func detach() float64 {
	before := atomic.LoadInt64(&ended)
	for i := 0; i < 1000; i++ {
		go func() { atomic.AddInt64(&ended, 1) }()
	}
	for atomic.LoadInt64(&ended) != before+1000 {
		runtime.Gosched()
	}
	return 1000
}

//go:noinline
func yieldBelow(depth int) {
	if depth > 0 {
		yieldBelow(depth - 1)
	} else {
		runtime.Gosched()
	}
}

//go:noinline
func yieldElsewhere() {
	for i := yields; i > 0; i-- {
		runtime.Gosched()
	}
}

func yieldInTwo() float64 {
	var group sync.WaitGroup
	group.Add(2)
	go func() {
		for i := 0; i < yields; i++ {
			yieldBelow(0)
		}
		group.Done()
	}()
	go func() {
		yieldElsewhere()
		group.Done()
	}()
	group.Wait()
	return 2 * yields
}

func yieldAt(depths ...int) float64 {
	var group sync.WaitGroup
	group.Add(len(depths))
	for _, depth := range depths {
		depth := depth
		go func() {
			for i := 0; i < yields; i++ {
				yieldBelow(depth)
			}
			group.Done()
		}()
	}
	group.Wait()
	return float64(len(depths) * yields)
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	var one int
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		one = fib(n - 1)
		group.Done()
	}()
	two := fib(n - 2)
	group.Wait()
	return one + two
}

func fibAll() float64 {
	before, spawns := 0, 1
	for i := 0; i < fibN; i++ {
		before, spawns = spawns, before+spawns
	}
	if fib(fibN) != before {
		panic("fib")
	}
	return float64(spawns - 1)
}

func skynet(first, size int) int {
	if size == 1 {
		return first
	}
	var sums [10]int
	var group sync.WaitGroup
	group.Add(10)
	for i := 0; i < 10; i++ {
		i := i
		go func() {
			sums[i] = skynet(first+i*size/10, size/10)
			group.Done()
		}()
	}
	group.Wait()
	sum := 0
	for _, part := range sums {
		sum += part
	}
	return sum
}

func skynetAll() float64 {
	if skynet(0, skynetN) != skynetN*(skynetN-1)/2 {
		panic("skynet")
	}
	return skynetN
}

func roundTrip() float64 {
	var mutex sync.Mutex
	turned := [2]*sync.Cond{sync.NewCond(&mutex), sync.NewCond(&mutex)}
	turn := 0
	var group sync.WaitGroup
	group.Add(2)
	for me := 0; me < 2; me++ {
		me := me
		go func() {
			for i := 0; i < trips; i++ {
				mutex.Lock()
				for turn != me {
					turned[me].Wait()
				}
				turn = 1 - me
				turned[1-me].Signal()
				mutex.Unlock()
			}
			group.Done()
		}()
	}
	group.Wait()
	return trips
}

func lockAndUnlock() float64 {
	var mutex sync.Mutex
	for i := 0; i < 10000; i++ {
		mutex.Lock()
		mutex.Unlock() //nolint:staticcheck // nothing is in between, by intention
	}
	return 10000
}

func contend() float64 {
	const times = 2000
	var mutex sync.Mutex
	count := 0
	batch(4, func() {
		for i := 0; i < times; i++ {
			mutex.Lock()
			count++
			mutex.Unlock()
		}
	})
	if count != 4*times {
		panic("contend")
	}
	return 4 * times
}

func residentBytes() float64 {
	text, _ := os.ReadFile("/proc/self/statm")
	pages, _ := strconv.Atoi(strings.Fields(string(text))[1])
	return float64(pages * os.Getpagesize())
}

func memory() {
	count := int64(100000 * scale)
	if count > 1000000 {
		count = 1000000
	}
	var mutex sync.Mutex
	var waiting int64
	goOn, over := sync.NewCond(&mutex), false
	var group sync.WaitGroup
	group.Add(int(count))
	before := residentBytes()
	for i := int64(0); i < count; i++ {
		go func() {
			mutex.Lock()
			atomic.AddInt64(&waiting, 1)
			for !over {
				goOn.Wait()
			}
			mutex.Unlock()
			group.Done()
		}()
	}
	for atomic.LoadInt64(&waiting) != count {
		runtime.Gosched()
	}
	after := residentBytes()
	mutex.Lock()
	over = true
	goOn.Broadcast()
	mutex.Unlock()
	group.Wait()
	fmt.Printf("bytes %.0f\n", (after-before)/float64(count))
}

func flat(row string) func() float64 {
	ns, _ := strconv.ParseInt(strings.TrimPrefix(strings.TrimPrefix(row, "flat-queued"), "flat"), 10, 64)
	return func() float64 { return batch(1000, func() { compute(ns) }) }
}

func run(row string) {
	switch {
	case row == "batched" || row == "queued":
		measure(func() float64 { return batch(1000, nothing) })
	case row == "one":
		measure(oneAtATime)
	case row == "inflight":
		measure(func() float64 { return batch(50000, nothing) })
	case strings.HasPrefix(row, "flat"):
		measure(flat(row))
	case row == "detached":
		measure(detach)
	case row == "yield2":
		measure(func() float64 { return yieldAt(0, 0) })
	case row == "yield-in-two":
		measure(yieldInTwo)
	case row == "yield4":
		measure(func() float64 { return yieldAt(0, 2, 4, 7) })
	case row == "fib":
		measure(fibAll)
	case row == "skynet":
		measure(skynetAll)
	case row == "roundtrip":
		measure(roundTrip)
	case row == "lock":
		measure(lockAndUnlock)
	case row == "contended":
		measure(contend)
	case row == "memory":
		memory()
	default:
		fmt.Println("none it ends with the program")
	}
}

func main() {
	if len(os.Args) == 7 && os.Args[1] == "fairness" {
		fairness(os.Args[2:])
	}
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: go ROW WORKERS SCALE, or go fairness KIND COUNT HOGS WORKERS SECONDS")
		os.Exit(2)
	}
	workers, _ := strconv.Atoi(os.Args[2])
	scale, _ = strconv.ParseFloat(os.Args[3], 64)
	runtime.GOMAXPROCS(workers)
	time.AfterFunc(2*time.Minute, func() { os.Exit(1) }) // a benchmark that hangs has failed
	run(os.Args[1])
}
