#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A small program of this folder's src/: built.sh MINIMUM PACKAGE PROGRAM [ARGUMENT...]. It prints the same with and
# without thrum, ends with 0, and idle threads served it at least MINIMUM times. PRELOAD in the environment names
# libraries that are preloaded in both runs. Called by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
minimum=$1 package=$2
shift 2
test_name="${1##*/}"
need_built "$1" "$package"
if [[ -n ${PRELOAD:-} ]]; then
  need "$PRELOAD" "$package"
  export LD_PRELOAD=$PRELOAD
  test_name+=" with ${PRELOAD##*/}"
fi
both "$@"
expect_reused "$minimum"
