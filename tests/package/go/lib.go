// SPDX-License-Identifier: Apache-2.0

// A Go library for programs in C (-buildmode=c-shared): memory, a goroutine and a lock, in each call.
package main

import "C"
import (
	"sort"
	"sync"
)

var mutex sync.Mutex
var total int

//export Work
func Work(count C.int) C.int {
	numbers := make([]int, 0)
	for i := 0; i < int(count); i++ {
		numbers = append(numbers, (i*7919)%1000)
	}
	sort.Ints(numbers)
	result := make(chan int)
	go func() {
		sum := 0
		for _, number := range numbers {
			sum += number
		}
		result <- sum
	}()
	sum := <-result
	mutex.Lock()
	total += sum
	mutex.Unlock()
	return C.int(sum)
}

func main() {}
