#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Cancellation by the thousand among threads that end by themselves: every cancelled thread is retired, the others are
# reused. cancel-storm.sh PROGRAM. Called by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need_built "$1" gcc
both "$1"
expect_reused 500
cancelled=$(sed -n 's/^thrum: *retired:.*cancelled \([0-9]*\).*/\1/p' thrum.summary)
((${cancelled:-0} >= 500)) || fail "${cancelled:-no} threads retired because they were cancelled, expected 500 at least"
