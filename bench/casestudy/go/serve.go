// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"time"
)

// What examples/server.c does, for one connection: a goroutine a request.
func serve() {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	fmt.Printf("listening on port %d\n", listener.Addr().(*net.TCPAddr).Port)
	connection, err := listener.Accept()
	if err != nil {
		fail(err)
	}
	var sending sync.Mutex
	var answers sync.WaitGroup
	for lines := bufio.NewScanner(connection); lines.Scan(); {
		var number, milliseconds int
		if _, err := fmt.Sscanf(lines.Text(), "%d %d", &number, &milliseconds); err != nil {
			fail(err)
		}
		answers.Add(1)
		go func() {
			time.Sleep(time.Duration(milliseconds) * time.Millisecond)
			sending.Lock()
			fmt.Fprintf(connection, "%d\n", number)
			sending.Unlock()
			answers.Done()
		}()
	}
	answers.Wait()
}
