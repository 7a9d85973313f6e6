# SPDX-License-Identifier: Apache-2.0
#
# Disease: a lock is held while its holder waits for an answer. Cure ("cured"): it is held to change what is shared.
# usage: python_lock.py THREADS [cured]
import sys
import threading
import time

QUESTIONS = 240
lock = threading.Lock()
table = 0


def ask():
    time.sleep(0.004)  # HERE: held-asleep
    return 1


def look_up():
    global table
    if "cured" in sys.argv[2:]:
        answer = ask()
        with lock:
            table += answer
    else:
        with lock:
            table += ask()


def work(times):
    for _ in range(times):
        look_up()


crew = int(sys.argv[1])
threads = [threading.Thread(target=work, args=(QUESTIONS // crew,)) for _ in range(crew)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
