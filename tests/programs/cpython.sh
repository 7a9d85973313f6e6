#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# CPython's own tests, as Debian ships them: cpython.sh [--rest PATTERN] MODULE [PATTERN...]. Called by ctest.
# Every case that passes without thrum has to pass under it, and the same cases have to run.
#
# Cases that match --rest want the kernel's ids of threads that ended one after the other to differ. No program may rely
# on that, but these do, and it is what THRUM_CACHE_MIN_REST is for: they are run by themselves, with a minute's rest.
#
# Some cases start a Python of their own and want nothing on its standard error, so the request for a
# summary is taken out of the environment once the interpreter runs (the cache has read it by then).
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
python=/usr/bin/python3.11
need $python python3.11
resting=''
if [[ $1 == --rest ]]; then
  resting=$2
  shift 2
fi
module=$1
shift
need "/usr/lib/python3.11/test/$module.py" libpython3.11-testsuite
test_name="cpython $module"
unset "${!PYTHON@}"

cat >start.py <<'P'
import os, runpy, sys
for name in ("THRUM_CACHE_VERBOSE", "THRUM_VERBOSE"):
    os.environ.pop(name, None)
sys.argv = ["test"] + sys.argv[1:]
runpy.run_module("test", run_name="__main__", alter_sys=True)
P

# One line a case: its name and how it ended.
cat >cases.py <<'P'
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter("testcase"):
    bad = [c.tag for c in case if c.tag in ("failure", "error", "skipped")]
    print(case.get("name"), bad[0] if bad else case.get("result", "ok"))
P

arguments=()
[[ -z $resting ]] || arguments+=(-i "$resting")
for pattern in "$@"; do arguments+=(-m "$pattern"); done
for kind in plain thrum; do
  "run_$kind" $python start.py -v --junit-xml "$work/$kind.xml" "${arguments[@]}" "$module"
  [[ -s $kind.xml ]] || fail "$kind: no results, exit code $(<$kind.code)"
  $python cases.py $kind.xml | sort >$kind.cases || fail "$kind: results cannot be read"
done

passed=$(grep -c ' completed$' plain.cases)
((passed >= 5)) || fail "only $passed cases pass without thrum"
diff <(cut -d' ' -f1 plain.cases) <(cut -d' ' -f1 thrum.cases) || fail "not the same cases"
worse=$(comm -23 <(grep ' completed$' plain.cases) <(grep ' completed$' thrum.cases))
[[ -z $worse ]] || fail "fails only under thrum: $worse"
flaky=$(grep -v -e ' completed$' -e ' skipped$' plain.cases)
[[ -z $flaky ]] || echo "$test_name: fails without thrum too (not counted): $flaky"
[[ -n $flaky || $(<plain.code) == "$(<thrum.code)" ]] ||
  fail "exit code $(<thrum.code) under thrum, $(<plain.code) without"
echo "$test_name: $passed cases pass with and without"
expect_reused 20

if [[ -n $resting ]]; then
  export THRUM_CACHE_MIN_REST=60000
  run_thrum $python start.py -v --junit-xml "$work/rest.xml" -m "$resting" "$module"
  [[ $(<thrum.code) == 0 ]] || fail "$resting fails with a minute's rest before reuse too"
  $python cases.py rest.xml >rest.cases || fail "results cannot be read"
  [[ -s rest.cases ]] || fail "no case is named $resting"
  grep -v ' completed$' rest.cases && fail "not passed with a minute's rest"
  (($(total reused) == 0)) || fail "a thread was reused within its minute's rest"
  echo "$test_name: $(wc -l <rest.cases) more cases pass with a rest before reuse"
fi
