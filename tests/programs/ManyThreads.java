// SPDX-License-Identifier: Apache-2.0
//
// 10,000 threads in groups of 50: each has thread-locals of its own, catches an exception, overflows its stack now
// and then (the virtual machine's guard pages), and adds to a sum. Run by java.sh.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

public class ManyThreads {
    static final ThreadLocal<Integer> own = new ThreadLocal<>();
    static final AtomicLong sum = new AtomicLong();
    static final AtomicInteger stale = new AtomicInteger();
    static final AtomicInteger caught = new AtomicInteger();
    static final AtomicInteger overflows = new AtomicInteger();

    static int deep(int depth) {
        return depth + deep(depth + 1);
    }

    static void work(int number) {
        if (own.get() != null) stale.incrementAndGet();
        own.set(number);
        try {
            if (number % 3 == 0) throw new IllegalStateException("number " + number);
        } catch (IllegalStateException error) {
            caught.incrementAndGet();
        }
        if (number % 500 == 7) {
            try {
                deep(0);
            } catch (StackOverflowError error) {
                overflows.incrementAndGet();
            }
        }
        byte[] garbage = new byte[1024 + number];
        sum.addAndGet(own.get() + garbage.length);
    }

    public static void main(String[] arguments) throws InterruptedException {
        int threads = 0;
        while (threads < 10000) {
            List<Thread> group = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                int number = threads++;
                group.add(new Thread(() -> work(number), "worker-" + number));
            }
            for (Thread thread : group) thread.start();
            for (Thread thread : group) thread.join();
            if (threads % 2000 == 0) System.gc();
        }
        System.out.println(threads + " threads, sum " + sum + ", stale " + stale + ", caught " + caught
            + ", overflows " + overflows);
        System.exit(stale.get() == 0 ? 0 : 1);
    }
}
