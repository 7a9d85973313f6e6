#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Threads of .NET on Mono (src/threads.cs), compiled here. Called by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need mono mono-runtime
need mcs mono-mcs
mcs -out:threads.exe "$here/src/threads.cs" >make.log 2>&1 || fail "mcs: $(tail -n 3 make.log)"
both mono threads.exe
expect_reused 200
