// SPDX-License-Identifier: Apache-2.0

// The server of ../wire.hpp with goroutines, one for each request. As in any server in Go, a reader needs one of the
// GOMAXPROCS places to run, as those have that compute; that there is something to read the runtime finds out by epoll.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	clockMonotonic  = 1
	clockProcessCPU = 2
	words           = 4 // of an order
	runaway         = math.MaxUint64
)

type request struct {
	steps, done, times uint64
}

var (
	requests []request
	finished uint64
	sink     uint64
	begun    time.Time
	begunAt  uint64 // the same moment, CLOCK_MONOTONIC
)

func fail(what interface{}) {
	fmt.Fprintf(os.Stderr, "go: %v\n", what)
	os.Exit(1)
}

func clock(number uintptr) uint64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, number, uintptr(unsafe.Pointer(&now)), 0)
	return uint64(now.Nano())
}

func compute(steps uint64) {
	x := uint64(1)
	for i := steps; i > 0; i-- {
		x = x*6364136223846793005 + 1442695040888963407
	}
	if x == 0 { // so that the compiler does not leave the loop out
		atomic.StoreUint64(&sink, x)
	}
}

func answer(one *request) {
	compute(one.steps)
	one.done = begunAt + uint64(time.Since(begun))
	atomic.AddUint64(&one.times, 1)
	atomic.AddUint64(&finished, 1)
}

// How many are to be waited for.
func takeOrders() uint64 {
	if err := syscall.SetNonblock(0, true); err != nil { // else a read would keep a kernel thread
		fail(err)
	}
	input := os.NewFile(0, "requests")
	buffer := make([]byte, 128*8*words)
	filled, expected := 0, uint64(0)
	for {
		length, err := input.Read(buffer[filled:])
		if length == 0 && err != nil {
			return expected
		}
		filled += length
		at := 0
		for ; filled-at >= 8*words; at += 8 * words {
			number := binary.LittleEndian.Uint64(buffer[at:])
			one := &requests[number]
			one.steps = binary.LittleEndian.Uint64(buffer[at+16:])
			if one.steps != runaway {
				expected++
			}
			go answer(one)
		}
		copy(buffer, buffer[at:filled])
		filled -= at
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go COUNT SECONDS; see wire.hpp")
		os.Exit(2)
	}
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fail(err)
	}
	patience, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		fail(err)
	}
	requests = make([]request, count+1)
	begun, begunAt = time.Now(), clock(clockMonotonic)
	output := bufio.NewWriter(os.Stdout)
	output.WriteByte('r')
	output.Flush()

	cpu := clock(clockProcessCPU)
	expected := takeOrders()
	end := time.Now().Add(time.Duration(patience * 1e9))
	for atomic.LoadUint64(&finished) < expected && time.Now().Before(end) {
		time.Sleep(time.Millisecond)
	}

	write := func(words ...uint64) {
		var bytes [8]byte
		for _, word := range words {
			binary.LittleEndian.PutUint64(bytes[:], word)
			output.Write(bytes[:])
		}
	}
	write(clock(clockProcessCPU)-cpu, 0)
	for i := range requests[:count] {
		times := atomic.LoadUint64(&requests[i].times)
		write(requests[i].done, times)
	}
	if err := output.Flush(); err != nil {
		fail(err)
	}
}
