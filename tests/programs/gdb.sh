#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program under gdb: gdb.sh PROGRAM. A breakpoint in a thread function that runs on a reused thread is hit, its
# backtrace is whole, and `info threads` shows the idle threads as what they are. Called by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need gdb gdb
need_built "$1" gcc

cat >commands <<G
set pagination off
set confirm off
set width 0
set debuginfod enabled off
set exec-wrapper $THRUM run --verbose --
break marker
run
echo == backtrace\n
backtrace
echo == threads\n
info threads
echo == all\n
thread apply all backtrace
echo == go on\n
continue
G
run_plain "$1"
run thrum gdb -nx -batch -x commands --args "$1"

# Lines between two of the marks above.
section() { sed -n "/^== $1\$/,/^== $2\$/p" thrum.out; }

grep -q 'not permitted' thrum.err && skip "gdb may not trace here"
section backtrace threads >backtrace.txt
section threads all >threads.txt
grep -q 'hit Breakpoint 1, marker' thrum.out || fail "the breakpoint was not hit"
grep -q '^#0 .*marker ' backtrace.txt || fail "frame 0 is not marker()"
grep -q '^#1 .* second ' backtrace.txt || fail "frame 1 is not second()"
tail -n 3 backtrace.txt | grep -q 'clone' || fail "the backtrace does not reach the thread's first frame"
grep -qE '\?\?|Backtrace stopped|corrupt' backtrace.txt && fail "the backtrace is broken"
section all 'go on' | grep -q 'Backtrace stopped' && fail "the backtrace of another thread is broken"

idle=$(grep -c 'thrum_kthread_idle' threads.txt)
((idle == 3)) || fail "$idle threads shown in thrum_kthread_idle, expected 3 of the 4 that ended"
[[ $(grep -c 'Thread 0x' threads.txt) == 5 ]] || fail "gdb's thread list has not main, 3 idle ones and the reused one"
[[ $(grep -c '^\[New Thread' thrum.out) == 4 ]] || fail "the breakpoint was not hit on a reused thread"
grep -q 'exited with code 07' thrum.out || fail "the program's exit code was not 7"
[[ $(<plain.code) == 7 ]] || fail "exit code $(<plain.code) without thrum, expected 7"
diff plain.out <(grep '^program: ' thrum.out) || fail "the program's output differs"
expect_reused 1
