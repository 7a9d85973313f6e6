// SPDX-License-Identifier: Apache-2.0
//
// Disease: one sync.Mutex around a map, taken for each number.
// Cure (second argument: cured): a map for each goroutine.
package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
)

var mu sync.Mutex
var counts = map[int]int{}

//go:noinline
func count(k int) {
	mu.Lock()
	counts[k]++
	mu.Unlock()
}

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	runtime.GOMAXPROCS(n)
	cured := len(os.Args) > 2 && os.Args[2] == "cured"
	var wg sync.WaitGroup
	for g := 0; g < n*4; g++ {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			mine := map[int]int{}
			x := uint64(g + 1)
			for i := 0; i < 12000000/(n*4); i++ {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
				if cured {
					mine[int(x%1000)]++
				} else {
					count(int(x % 1000))
				}
			}
		}(g)
	}
	wg.Wait()
}
