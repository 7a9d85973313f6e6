#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: the program succeeds, and what it prints on standard output and standard error matches the extended regular
# expression from its beginning to its end.
# Usage: check-output.sh EXPRESSION PROGRAM [ARGUMENT...]
set -u
expression=$1
shift
output=$("$@" 2>&1)
status=$?
echo "$output"
((status == 0)) || { echo "$1: status $status" >&2; exit 1; }
[[ $output =~ ^($expression)$ ]] || { echo "expected: $expression" >&2; exit 1; }
