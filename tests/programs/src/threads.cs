// SPDX-License-Identifier: Apache-2.0
//
// Threads of .NET, one after another and some at a time, on Mono. Its runtime sets the scheduling parameters of each, and
// its collector stops all of them by signals.
using System;
using System.Threading;

static class Threads {
    static int sum;

    static void Add(int value) {
        var garbage = new byte[100 * value];
        Interlocked.Add(ref sum, value + garbage[0]);
    }

    static void Main() {
        for (int round = 1; round <= 100; round++) {
            var crew = new Thread[3];
            for (int i = 0; i < crew.Length; i++) {
                int value = i + 1;
                crew[i] = new Thread(() => Add(value));
                crew[i].Start();
            }
            foreach (Thread thread in crew)
                thread.Join();
            if (round % 20 == 0)
                GC.Collect();
        }
        Console.WriteLine(sum);
    }
}
