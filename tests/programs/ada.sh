#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Ada tasks (src/tasks.adb), compiled here. Called by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need gnatmake gnat
gnatmake -q -D "$work" -o tasks "$here/src/tasks.adb" >make.log 2>&1 || fail "gnatmake: $(tail -n 3 make.log)"
both "$work/tasks"
expect_reused 200
