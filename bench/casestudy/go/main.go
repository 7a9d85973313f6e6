// SPDX-License-Identifier: Apache-2.0

// The tasks of ../tasks.hpp, which says what each word means, done by goroutines; and with the one word "serve" the
// server of serve.go.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

func fail(what interface{}) {
	fmt.Fprintf(os.Stderr, "go: %v\n", what)
	os.Exit(1)
}

func number(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		fail(err)
	}
	return value
}

// --- what a task does -----------------------------------------------------------------------------------

type action struct {
	name   string
	amount float64
	folder string
}

func parse(words []string) []action {
	var actions []action
	for _, word := range words {
		parts := append(strings.SplitN(word, ":", 3), "", "")
		actions = append(actions, action{parts[0], number(parts[1]), parts[2]})
	}
	return actions
}

var sink uint64

func compute(times float64) {
	x := uint64(1)
	for i := uint64(times); i > 0; i-- {
		x = x*6364136223846793005 + 1442695040888963407
	}
	if x == 0 { // so that the compiler does not leave the loop out
		atomic.StoreUint64(&sink, x)
	}
}

// The runtime finds out that a call takes long, and lets another kernel thread run the other goroutines.
func writeToDisk(folder string, kibibytes float64) {
	file, err := os.CreateTemp(folder, "thrum-casestudy-")
	if err == nil {
		err = os.Remove(file.Name())
	}
	if err == nil {
		_, err = file.Write(make([]byte, int(kibibytes)*1024))
	}
	if err == nil {
		err = syscall.Fdatasync(int(file.Fd()))
	}
	if err != nil {
		fail(err)
	}
	file.Close()
}

func sleepInKernel(span time.Duration) {
	for left := syscall.NsecToTimespec(int64(span)); syscall.Nanosleep(&left, &left) == syscall.EINTR; {
	}
}

// How late it was, in ms.
func sleep(what action) float64 {
	span := time.Duration(what.amount * 1e9)
	end := time.Now().Add(span)
	switch what.name {
	case "sleep":
		time.Sleep(span)
	case "kernel":
		sleepInKernel(span)
	case "poll":
		for time.Now().Before(end) {
			runtime.Gosched()
		}
	case "bell":
		waitForBell(end)
	default:
		fail("there is no action '" + what.name + "'")
	}
	return float64(time.Since(end)) / 1e6
}

func run(actions []action) float64 {
	late := 0.0
	for _, what := range actions {
		switch what.name {
		case "compute":
			compute(what.amount)
		case "write", "few", "direct":
			writeToDisk(what.folder, what.amount)
		default:
			late += sleep(what)
		}
	}
	return late
}

// --- crews ------------------------------------------------------------------------------------------------

func goroutines(tasks int, task func(i int)) {
	var group sync.WaitGroup
	group.Add(tasks)
	for i := 0; i < tasks; i++ {
		i := i
		go func() {
			task(i)
			group.Done()
		}()
	}
	group.Wait()
}

func pool(size, tasks int, task func(i int)) {
	var next int64
	goroutines(size, func(int) {
		for {
			i := int(atomic.AddInt64(&next, 1)) - 1
			if i >= tasks {
				return
			}
			task(i)
		}
	})
}

func cpuSeconds() float64 {
	var now syscall.Timespec
	const processClock = 2
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processClock, uintptr(unsafe.Pointer(&now)), 0)
	return float64(now.Nano()) / 1e9
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		serve()
		return
	}
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: go goroutines|pool SIZE TASKS ACTION..., or go serve")
		os.Exit(2)
	}
	crew, size, tasks := os.Args[1], int(number(os.Args[2])), int(number(os.Args[3]))
	actions := parse(os.Args[4:])
	time.AfterFunc(30*time.Minute, func() { fail("it hangs") })
	late := make([]float64, tasks)
	task := func(i int) { late[i] = run(actions) }

	fmt.Println("begin")
	begun, cpu := time.Now(), cpuSeconds()
	if crew == "pool" {
		pool(size, tasks, task)
	} else {
		runtime.GOMAXPROCS(size)
		goroutines(tasks, task)
	}
	used, seconds := cpuSeconds()-cpu, time.Since(begun).Seconds()
	sum, most := 0.0, 0.0
	for _, ms := range late {
		sum += ms
		if ms > most {
			most = ms
		}
	}
	fmt.Printf("%.9f %.9f %.6f %.6f\n", seconds, used, sum/float64(tasks), most)
}
