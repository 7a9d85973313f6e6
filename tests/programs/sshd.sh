#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# OpenSSH's server, whose process for the network is under a seccomp filter: a login by key, over a pipe. Called by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need /usr/sbin/sshd openssh-server
need ssh openssh-client
((EUID == 0)) || skip "a server for logins needs root"
[[ -d /run/sshd ]] || mkdir -m 755 /run/sshd
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$key"; done
cp user.pub keys
chmod 600 keys
cat >config <<C
HostKey $work/host
AuthorizedKeysFile $work/keys
StrictModes no
UsePAM no
PermitRootLogin yes
PidFile none
LogLevel ERROR
C
echo "it $(<host.pub)" >known

login() { # NAME SERVER...
  local name=$1
  shift
  # shellcheck disable=SC2016 # expanded by the shell that was logged in to
  run "$name" ssh -F none -i user -o "UserKnownHostsFile=$work/known" -o HostKeyAlias=it -o BatchMode=yes \
    -o "ProxyCommand=$*" root@it 'echo logged in as $(id -un)'
}
login plain /usr/sbin/sshd -i -e -f "$work/config"
[[ $(<plain.code) == 0 ]] || skip "no login here: $(tail -n 1 plain.err)"
login thrum "$THRUM" run --verbose -- /usr/sbin/sshd -i -e -f "$work/config"
expect_same
grep -q 'logged in as root' thrum.out || fail "no login"
