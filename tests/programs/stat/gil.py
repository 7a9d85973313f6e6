# SPDX-License-Identifier: Apache-2.0
#
# Disease: threads of Python code that compute. CPython's global interpreter lock lets one of them run at a time.
# Cure (gil.py THREADS cured): the work is left to a function of C that gives the lock up while it works, hashlib's.
import hashlib
import sys
import threading

ROUNDS, BLOCKS = 6000000, 480
BLOCK = bytes(1 << 20)


def compute(share):
    total = 1
    for number in range(share):  # HERE: one-lock
        total = (total * 31 + number) % 1000003  # HERE: one-lock
    return total


def digest(share):
    for _ in range(share):
        hashlib.sha256(BLOCK).digest()


def main():
    crew = int(sys.argv[1])
    work, total = (digest, BLOCKS) if sys.argv[2:] == ["cured"] else (compute, ROUNDS)
    threads = [
        threading.Thread(target=work, args=(total * (i + 1) // crew - total * i // crew,)) for i in range(crew)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
