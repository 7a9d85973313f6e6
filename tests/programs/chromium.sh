#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Chromium without a screen, in its normal sandbox, which it has only as an ordinary user: a page with a script, as text and as
# a picture, which its GPU process and the compositor's threads draw.
# Its processes make threads before and after they put themselves under a seccomp filter. Called by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need chromium chromium
cat >page.html <<H
<html><body><p id="sum">no script</p><script>document.getElementById('sum').textContent = 'sum ' + (19 + 23);</script>
</body></html>
H
as_user=()
if ((EUID == 0)); then
  need runuser util-linux
  as_user=(runuser -u nobody -- env "HOME=$work/home")
  mkdir home
  chown nobody home
  chmod 755 . home
fi
# What a browser without a desktop says on standard error differs from run to run, but for these.
normalise() { sed -nE '/sum 42|FATAL|CRASHING|seccomp-bpf failure|exited unexpectedly/{s/^\[[^]]*\] *//;p}'; }

browser=(chromium --headless --disable-extensions)
page=(--dump-dom "file://$work/page.html")
run_plain "${as_user[@]}" "${browser[@]}" "${page[@]}"
[[ $(<plain.code) == 0 ]] || skip "chromium does not run here: exit code $(<plain.code)"
if [[ ! -x $THRUM ]] || { ((EUID == 0)) && ! runuser -u nobody -- test -x "$THRUM"; }; then
  skip "an ordinary user cannot reach $THRUM"
fi
rm -rf home/.[a-z]*
run thrum "${as_user[@]}" "$THRUM" run --verbose -- "${browser[@]}" "${page[@]}"
expect_same
grep -q 'sum 42' thrum.out || fail "the page was not shown"
[[ $(total created) -gt 0 ]] || fail "no summary: was the cache loaded?"

mkdir -m 777 shots
rm -rf home/.[a-z]*
run_plain "${as_user[@]}" "${browser[@]}" --screenshot="$work/shots/plain.png" "${page[1]}"
rm -rf home/.[a-z]*
run thrum "${as_user[@]}" "$THRUM" run --verbose -- "${browser[@]}" --screenshot="$work/shots/thrum.png" "${page[1]}"
expect_same
[[ $(head -c 4 shots/plain.png | tail -c 3) == PNG ]] || fail "no picture without thrum"
cmp shots/plain.png shots/thrum.png || fail "the pictures differ"
echo "$test_name: created $(total created), reused $(total reused), passed through $(total 'passed through')"
