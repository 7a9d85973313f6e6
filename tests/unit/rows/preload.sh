#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Row preload: `thrum run` refuses the programs that LD_PRELOAD cannot reach (static, setuid, setgid, musl), in one line,
# and does not run them. As children of a program that it runs they behave as without it. Called by ctest, in debug builds
# once more with the row left out: then nothing is refused.
#
#   preload.sh thrum|skipped THRUM ORDINARY STATIC MUSL
set -u

mode=$1 thrum=$2 ordinary=$3 static=$4 musl=$5
unset "${!THRUM_CACHE_@}" THRUM_VERBOSE THRUM_SKIP THRUM_DEBUG_MISSING LD_PRELOAD
[[ $mode != skipped ]] || export THRUM_SKIP=preload

folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
failures=0 tried=0

fail() {
  echo "preload: $*"
  failures=$((failures + 1))
}

# Runs a program under `thrum run`: leaves its exit code, its output and what was said.
run() {
  "$thrum" run -- "$@" >"$folder/out" 2>"$folder/err" </dev/null
  code=$?
}

# Refused: exit code not 0, one line of thrum's with the word in it, nothing of the program's.
is_refused() {
  ((code != 0)) && [[ $(wc -l <"$folder/err") == 1 && $(<"$folder/err") == thrum*$1* && ! -s $folder/out ]]
}

expect_refused() { # name, word, program, arguments
  local name=$1 word=$2
  shift 2
  run "$@"
  tried=$((tried + 1))
  if [[ $mode == skipped ]]; then
    ! is_refused "$word" || fail "$name: refused although the row is left out"
  elif ! is_refused "$word"; then
    fail "$name: not refused by one line with '$word': exit $code, stderr: $(<"$folder/err"), stdout: $(<"$folder/out")"
  fi
}

# An ordinary program runs, its exit code and output are its own.
run "$ordinary" a b
[[ $code == 7 && $(<"$folder/out") == "ran with a b" ]] || fail "ordinary program: exit $code: $(cat "$folder/out" "$folder/err")"

expect_refused "static program" "statically linked" "$static" a
expect_refused "musl program" musl "$musl" a

cp "$ordinary" "$folder/setuid" && chmod 4755 "$folder/setuid"
cp "$ordinary" "$folder/setgid" && chmod 2755 "$folder/setgid"
if [[ -u $folder/setuid && $(stat -c %u "$folder/setuid") != "$(id -u)" ]] || [[ $(id -u) == 0 ]]; then
  # Another user's: what the bit changes something for. A root's own file is given away first.
  if [[ $(id -u) == 0 ]]; then
    chown 47123:47123 "$folder/setuid" "$folder/setgid"
    chmod 4755 "$folder/setuid"
    chmod 2755 "$folder/setgid"
    chmod 755 "$folder"
  fi
  if findmnt -n -o OPTIONS --target "$folder" | grep -qw nosuid; then
    echo "preload: setuid and setgid programs not tried: $folder is mounted nosuid"
  else
    expect_refused "setuid program" set-user-ID "$folder/setuid" a
    expect_refused "setgid program" set-group-ID "$folder/setgid" a
  fi
else
  echo "preload: setuid and setgid programs not tried: needs root to make another user's"
fi

# As a child of a program that has the library: the same output, exit code, and nothing on stderr.
expect_child_unharmed() { # name, program
  tried=$((tried + 1))
  run /bin/sh -c '"$1" a b; echo "exit $?"' sh "$2"
  [[ $code == 0 && $(<"$folder/out") == $'ran with a b\nexit 7' && ! -s $folder/err ]] ||
    fail "$1 as a child: exit $code: $(cat "$folder/out" "$folder/err")"
}

# Compiles the program once more; false, with a line, where it cannot be made or does not run here.
make_other() { # name, command...
  local name=$1 status
  shift
  "$@" -O1 -o "$folder/$name" "${BASH_SOURCE[0]%/*}/preload-program.c" -pthread 2>/dev/null &&
    "$folder/$name" >/dev/null 2>&1
  status=$?
  ((status == 7)) || echo "preload: no $name child tried: '$*' makes none that runs here"
  return $((status != 7))
}

expect_child_unharmed "an ordinary program" "$ordinary"
expect_child_unharmed "a static program" "$static"
if make_other musl musl-gcc; then expect_child_unharmed "a musl program" "$folder/musl"; fi
if [[ $(uname -m) == x86_64 ]] && make_other i386 cc -m32; then
  expect_child_unharmed "a 32-bit program" "$folder/i386"
fi

echo "row preload, $mode: $tried programs, $failures failures"
((failures == 0))
