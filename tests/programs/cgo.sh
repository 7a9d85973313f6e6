#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A Go program with C parts, where both sides make threads that end. Called by ctest; heavy (a Go compiler).
limit=200
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need go golang-go
need gcc gcc
cp "$here"/cgo/* . || exit 1
mkdir cache
GOCACHE=$work/cache GOPATH=$work/go GOFLAGS='' GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=1 GO111MODULE=on \
  go build -o program . >build.log 2>&1 || { cat build.log && fail "the program could not be built"; }
both ./program
expect_reused 1500
