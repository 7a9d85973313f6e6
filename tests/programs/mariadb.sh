#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# MariaDB's server with a thread for each connection, none kept by the server itself: bursts of connections, their
# answers, and its tasks some seconds later, which must be about as many as without thrum. Called by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need /usr/sbin/mariadbd mariadb-server
need mariadb-install-db mariadb-server
need mariadb-slap mariadb-client
need mariadb-admin mariadb-client
who=$(id -un)
mariadb-install-db --no-defaults --datadir="$work/data" --user="$who" --auth-root-authentication-method=normal \
  >install.log 2>&1 || skip "no database here: $(tail -n 1 install.log)"

# The bursts, and for how many tasks they are some seconds later: in tasks.
cat >burst <<B
#!/bin/bash
rm -f tasks
"\$@" /usr/sbin/mariadbd --no-defaults --datadir='$work/data' --socket='$work/socket' --skip-networking --user='$who' \
  --thread-cache-size=0 --max-connections=200 --pid-file='$work/pid' &
for ((i = 0; i < 300; i++)); do
  mariadb-admin --no-defaults -u root --socket='$work/socket' ping >/dev/null 2>&1 && break
  sleep 0.1
done
for burst in 1 2; do
  mariadb-slap --no-defaults -u root --socket='$work/socket' --concurrency=60 --number-of-queries=600 \
    --query='select sum(seq) from (select 19 as seq union select 23) as two' >/dev/null || echo "no answer"
done
mariadb --no-defaults -u root --socket='$work/socket' -N -e 'select 19 + 23'
sleep 9
ls /proc/\$(<'$work/pid')/task | wc -l >tasks
mariadb-admin --no-defaults -u root --socket='$work/socket' shutdown
wait \$!
B
chmod +x burst
normalise() { sed -E '/^[0-9]{4}-[0-9-]+ +[0-9:]+ [0-9]+ \[(Note|Warning)\]/d; /^Version: |^sh: |safe_mutex/d'; }
run plain ./burst
plain=$(<tasks)
run thrum ./burst "$THRUM" run --verbose --
expect_same
expect_reused 40
(($(<tasks) * 10 <= plain * 12 + 20)) || fail "$(<tasks) tasks are left under thrum, $plain without"
echo "$test_name: $(<tasks) tasks some seconds later, $plain without thrum"
