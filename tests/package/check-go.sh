#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# check-go.sh SOURCES LIBRARY_DIRECTORY CC: threads of libthrum that call a Go library, in the default mode.
set -u
sources=$1 libraries=$2 cc=$3
command -v go >/dev/null || {
  echo "check-go.sh: skipped: go is missing (Debian: golang-go)"
  exit 77
}
work=$(mktemp -d "${TMPDIR:-/tmp}/thrum-go.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cp "$(dirname "$0")"/go/* "$work" && cd "$work" || exit 1

export GOCACHE=$work/cache GOPATH=$work/go GOFLAGS='' GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=1 GO111MODULE=on
go build -buildmode=c-shared -o lib.so lib.go || exit 1
"$cc" -O2 -Wall -o host host.c -I"$sources/include" -I. -L"$libraries" -L. -lthrum -l:lib.so \
  -Wl,-rpath,"$libraries:$work" || exit 1

unset "${!THRUM_@}"
for run in 1 2 3 4 5 6; do
  for workers in 1 2; do
    for slice in 1000 100; do
      said=$(THRUM_WORKERS=$workers THRUM_SLICE=$slice timeout -s KILL 100 ./host 2>&1)
      code=$?
      if [[ $code != 0 || $said != "all have ended" ]]; then
        echo "run $run, $workers workers, slices of $slice us: code $code: $said"
        exit 1
      fi
    done
  done
done
