// SPDX-License-Identifier: Apache-2.0

// Threads that end, made by Go and by C in one process. A goroutine that ends while it is locked to its thread takes
// the thread with it; C threads that call into Go get and give back a Go identity (a thread-specific key, an
// alternate signal stack, a signal mask). Run by cgo.sh.
package main

/*
#include "bridge.h"
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

var called int64

//export goAdd
func goAdd(number C.int) C.int {
	atomic.AddInt64(&called, 1)
	text := strings.Repeat("x", int(number)%100+1) // something for the collector
	return C.int(len(text)) + number
}

// Each goroutine of the group keeps its thread until it ends, and the thread ends with it.
func lockedGroup(size int, sum *int64) {
	var group sync.WaitGroup
	for i := 0; i < size; i++ {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			runtime.LockOSThread()
			atomic.AddInt64(sum, int64(C.plus_one(C.int(number))))
		}(i)
	}
	group.Wait()
}

func main() {
	var locked int64
	for round := 0; round < 100; round++ {
		lockedGroup(20, &locked)
		if round%20 == 0 {
			runtime.GC()
		}
	}
	var fromC int64
	for round := 0; round < 100; round++ {
		fromC += int64(C.threads_that_call_go(C.int(round)))
	}
	fmt.Println("locked", locked, "from C", fromC, "calls", atomic.LoadInt64(&called))
	C.report_cache()
	if called != 1000 {
		os.Exit(1)
	}
}
