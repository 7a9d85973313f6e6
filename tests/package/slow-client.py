#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# A client of examples/server.c that does not read for a while, for check-server.sh: it asks for more answers than the
# kernel keeps for it (small segments, a small receive buffer, which keep the server's send buffer small), says "stuck"
# when they are all asked for and the kernel has not got all answers, waits for a line on stdin, and then expects each
# answer once.
#
#   slow-client.py PORT
import socket
import sys
import time

REQUESTS = 12000
FIRST = 10**17  # numbers of 18 digits make long answers
DEADLINE = time.monotonic() + 50


def queued(own, other):
    """Bytes that the kernel has for this socket to send, and for it to be read; None: it is not in the table."""
    for line in open('/proc/net/tcp', encoding='ascii').read().splitlines()[1:]:
        words = line.split()
        if int(words[1].split(':')[1], 16) == own and int(words[2].split(':')[1], 16) == other:
            return [int(number, 16) for number in words[4].split(':')]
    return None


def wait_until_stuck(port, own, total):
    """All requests are with the server, and what it has sent has come to rest, short of all."""
    before = None
    while True:
        mine, servers = queued(own, port), queued(port, own)
        if mine is None or servers is None:
            sys.exit('slow-client: /proc/net/tcp does not know the connection')
        if mine[0] == 0 and servers[1] == 0 and (mine, servers) == before:
            break
        before = mine, servers
        if time.monotonic() > DEADLINE:
            sys.exit(f'slow-client: the server does not read: {before}')
        time.sleep(0.2)
    kept = mine[1] + servers[0]
    if kept >= total:
        sys.exit(f'slow-client: the kernel keeps all {total} bytes of answers')
    return kept


def main():
    port = int(sys.argv[1])
    with socket.socket() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(50)
        client.connect(('127.0.0.1', port))
        numbers = range(FIRST, FIRST + REQUESTS)
        client.sendall(b''.join(b'%d 0\n' % number for number in numbers))
        total = REQUESTS * (len(str(FIRST)) + 1)
        kept = wait_until_stuck(port, client.getsockname()[1], total)
        print(f'stuck, {kept} of {total} bytes of answers are underway', flush=True)
        sys.stdin.readline()
        answers = b''
        while len(answers) < total:
            more = client.recv(65536)
            if not more:
                sys.exit(f'slow-client: only {len(answers)} of {total} bytes of answers came')
            answers += more
    if sorted(answers.split()) != [b'%d' % number for number in numbers]:
        sys.exit('slow-client: the answers are not those asked for')


main()
