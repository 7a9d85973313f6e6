#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# HAProxy with four threads: some hundred requests, and a soft stop. Called
# by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need haproxy haproxy
need curl curl
cat >config <<C
global
    nbthread 4
    maxconn 200
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend it
    bind unix@$work/socket
    http-request return status 200 content-type text/plain string "hello from %[path]\n"
C
# Asks a server for pages, and then to end.
cat >visit <<V
#!/bin/bash
rm -f '$work/socket'
"\$@" haproxy -db -f '$work/config' &
for ((i = 0; i < 300; i++)); do [[ -S '$work/socket' ]] && break; sleep 0.1; done
for ((i = 0; i < 20; i++)); do
  curl -sS --unix-socket '$work/socket' "http://it/\$i.[1-10]"
done
kill -USR1 \$!
wait \$!
V
chmod +x visit
normalise() { sed -E '/^\[?(NOTICE|WARNING|ALERT)/d; s/^\[[A-Z]+\] .*//; /^$/d'; }
run plain ./visit
run thrum ./visit "$THRUM" run --verbose --
expect_same
(($(grep -c '^hello from' thrum.out) == 200)) || fail "not all pages came"
[[ -s thrum.summary ]] || fail "no summary: was the cache loaded?"
echo "$test_name: created $(total created), passed through $(total 'passed through')"
