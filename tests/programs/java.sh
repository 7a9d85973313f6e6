#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A Java program that starts 10,000 threads. Called by ctest; heavy (a JDK).
limit=200
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need java default-jdk-headless
unset JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS

java=(java -Xmx256m -Xshare:auto)
run_plain "${java[@]}" "$here/ManyThreads.java"
grep -q 'No suitable Java\|NoClassDefFound\|compiler' plain.err && skip "no Java compiler (Debian: default-jdk-headless)"
run_thrum "${java[@]}" "$here/ManyThreads.java"
expect_same
grep -q '^10000 threads' thrum.out || fail "not 10,000 threads"
expect_reused 9000
