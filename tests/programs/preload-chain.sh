#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Another preloaded library keeps working next to the cache, whichever of the two is put first: libeatmydata, which
# turns fsync() into a success that does nothing (on a pipe it fails with EINVAL otherwise). Called by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need eatmydata eatmydata
python=/usr/bin/python3
need $python python3
unset "${!PYTHON@}"

cat >syncs.py <<'P'
import errno, os, threading
out, inp = os.pipe()
seen = []
def sync():
    try:
        os.fsync(inp)
        seen.append("ok")
    except OSError as error:
        seen.append(errno.errorcode[error.errno])
for _ in range(200):
    thread = threading.Thread(target=sync)
    thread.start()
    thread.join()
print(len(seen), *sorted(set(seen)))
P

run_plain $python syncs.py
[[ $(<plain.out) == "200 EINVAL" ]] || fail "without libeatmydata fsync() should fail with EINVAL"

run_plain eatmydata $python syncs.py
[[ $(<plain.out) == "200 ok" ]] || fail "libeatmydata does not work here"
run_thrum eatmydata $python syncs.py
expect_same
expect_reused 150

run thrum eatmydata "$THRUM" run --verbose -- $python syncs.py
expect_same
expect_reused 150
