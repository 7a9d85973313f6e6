#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `thrum stat` names what a Java virtual machine has compiled, if the machine writes /tmp/perf-PID.map: when it ends, or
# while it runs, for -p. Without that file the report says what is missing. Called by ctest; heavy (a JDK).
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need javac default-jdk-headless
need jcmd default-jdk-headless
need python3 python3
unset JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS

javac -d . "$here/BusyThreads.java" || fail "javac"
java=(java -Xmx64m -Xshare:auto -XX:+UnlockDiagnosticVMOptions)
"${java[@]}" -XX:+DumpPerfMapAtExit -version 2>version || skip "this Java machine writes no perf map: $(head -n 1 version)"
jvm=''
trap '[[ -z $jvm ]] || { kill -KILL "$jvm"; wait "$jvm" 2>/dev/null; }; rm -rf "$work"' EXIT

# observe NAME ARGUMENT...: the report of thrum stat, as NAME.json.
observe() {
  local name=$1
  shift
  timeout -k 5 "$limit" "$THRUM" stat --json -o "$name.json" "$@" >"$name.out" 2>"$name.err" || fail "$name: $(tail -n 3 "$name.err")"
  sed -n 's/^ready //p' "$name.out" | while read -r pid; do rm -f "/tmp/perf-$pid.map"; done
}

# expect NAME EXPRESSION: of its report d, where `burns` has the names of the functions that use the CPU.
expect() {
  python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
burns = [site["stack"][0]["function"] for site in d["burns"] if site["stack"]]
sys.exit(0 if eval(sys.argv[2]) else str(burns) + str(d["warnings"]))' "$1.json" "$2" || fail "$1: not $2"
}

observe without -- "${java[@]}" -cp . BusyThreads 0.3
expect without '"BusyThreads.churn" not in burns and any("compiled at run time" in s for s in d["warnings"])'
observe exit -- "${java[@]}" -XX:+DumpPerfMapAtExit -cp . BusyThreads 0.3
expect exit 'any(name in ("BusyThreads.churn", "BusyThreads.work") for name in burns)'
expect exit 'not any("compiled at run time" in s for s in d["warnings"])'

"${java[@]}" -cp . BusyThreads 1000 >attached.out &
jvm=$!
until grep -q ready attached.out; do kill -0 $jvm || fail "java ended"; sleep 0.05; done
jcmd $jvm Compiler.perfmap >jcmd.out 2>&1 || fail "jcmd: $(tail -n 3 jcmd.out)"
observe attached --seconds 1 -p $jvm
expect attached 'any(name in ("BusyThreads.churn", "BusyThreads.work") for name in burns)'
rm -f "/tmp/perf-$jvm.map"
