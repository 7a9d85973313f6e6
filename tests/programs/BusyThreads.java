// SPDX-License-Identifier: Apache-2.0
//
// Two threads that compute in a method which the virtual machine soon compiles, for so many seconds of their CPU time.
// Says "ready PID" when it is compiled. Run by java-names.sh.
import java.lang.management.ManagementFactory;

public class BusyThreads {
    static volatile long result;

    static long churn(long state, int steps) {
        for (int i = 0; i < steps; i++) state = state * 6364136223846793005L + 1442695040888963407L;
        return state;
    }

    static void work(double seconds) {
        long limit = (long) (seconds * 1e9);
        long state = 1;
        while (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() < limit) state = churn(state, 100000);
        result = state;
    }

    public static void main(String[] arguments) throws InterruptedException {
        double seconds = Double.parseDouble(arguments[0]);
        for (int i = 0; i < 200; i++) result = churn(i, 100000);
        System.out.println("ready " + ProcessHandle.current().pid());
        Thread other = new Thread(() -> work(seconds));
        other.start();
        work(seconds);
        other.join();
    }
}
