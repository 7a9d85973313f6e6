#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that makes a thread for every request, without and with the cache: CPython's ThreadingHTTPServer
as it is, asked by wrk over eight connections at a time on the loopback interface. HTTP/1.0 ends a connection
with its answer, so each request is a connection and a thread.

Requests per second and the times until an answer are wrk's. On a machine of few CPUs, client and server share
them, and the client's work is in neither's favour. CPU time is the server's.
"""
import ctypes
import http.server
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import common  # noqa: E402

NAME = "server"
BODY = b"A thread should be light until it has to be heavy.\n"
CONNECTIONS = 8


# --- the server: "server --work" ----------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_):
        pass


class Counters(ctypes.Structure):  # the beginning of struct thrum_cache_counters, thrum/cache.h
    _fields_ = [("version", ctypes.c_uint32), ("size", ctypes.c_uint32),
                ("created", ctypes.c_uint64), ("reused", ctypes.c_uint64)]


def counters():
    try:
        found = Counters.in_dll(ctypes.CDLL(None), "thrum_cache_counters")
    except ValueError:  # not preloaded
        return 0, 0
    if found.version != 1:
        raise common.Failure("the library's counters are of another version than this benchmark's")
    return found.created, found.reused


def serve():
    """Says where, serves until SIGINT or SIGTERM, and says what it took."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    before = resource.getrusage(resource.RUSAGE_SELF)
    print(server.server_port, flush=True)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # when wrk is done it drops connections
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()
    after = resource.getrusage(resource.RUSAGE_SELF)
    server.server_close()
    created, reused = counters()
    print(json.dumps({"user_s": after.ru_utime - before.ru_utime,
                      "system_s": after.ru_stime - before.ru_stime, "created": created,
                      "reused": reused}), flush=True)


# --- the measurement ----------------------------------------------------------------------------------------


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def ask(wrk, port, seconds):
    """What wrk says: requests, requests/s, median and 99th percentile of the times until an answer, in ms."""
    answer = subprocess.run([wrk, "-t", "1", "-c", str(CONNECTIONS), "-d", f"{seconds}s", "--latency",
                             f"http://127.0.0.1:{port}/"], stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, env=common.environment(), check=False)
    found = {key: re.search(pattern, answer.stdout) for key, pattern in (
        ("requests", r"(\d+) requests in"), ("rate", r"Requests/sec:\s+([\d.]+)"),
        ("p50", r"50%\s+([\d.]+(?:us|ms|s))"), ("p99", r"99%\s+([\d.]+(?:us|ms|s))"))}
    if answer.returncode != 0 or not all(found.values()) or int(found["requests"][1]) == 0:
        raise common.Failure(f"wrk: {(answer.stderr or answer.stdout).strip()[:200]}")
    if "Non-2xx" in answer.stdout:
        raise common.Failure("the server gave errors")
    return (int(found["requests"][1]), float(found["rate"][1]), milliseconds(found["p50"][1]),
            milliseconds(found["p99"][1]))


def measure(options, wrk, cached):
    server = subprocess.Popen([options.python, os.path.realpath(__file__), "--work"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              env=common.environment(options.library if cached else None))
    try:
        port = server.stdout.readline()
        if not port.strip().isdigit():
            raise common.Failure("the server did not start")
        requests, rate, p50, p99 = ask(wrk, int(port), options.seconds)
        server.send_signal(signal.SIGTERM)
        output, _ = server.communicate(timeout=60)
    finally:
        server.kill()
        server.wait()
    if server.returncode != 0:
        raise common.Failure(f"the server ended with status {server.returncode}")
    end = json.loads(output)
    common.check_reuse(cached, end["reused"])
    cpu = end["user_s"] + end["system_s"]
    return {"rate": rate, "p50": p50, "p99": p99, "cpu_us": cpu * 1e6 / requests,
            "kernel": end["system_s"] / cpu * 100}


COLUMNS = [("measure", "measure", "", 0), ("unit", "", "", 0), ("default", "default", "", 2),
           ("cache", "cache", "", 2), ("ratio", "ratio", "cache/default", 3)]
ROWS = [("rate", "requests", "1/s"), ("p50", "answer, median", "ms"),
        ("p99", "answer, 99th percentile", "ms"), ("cpu_us", "server's CPU", "µs/request"),
        ("kernel", "server's kernel time", "% of CPU")]


def body():
    options = common.read_options(
        NAME, "A thread per request: CPython's ThreadingHTTPServer under wrk, without and with the cache.",
        [("--rounds", "Pairs of runs", 1, 15, 31, 1), ("--seconds", "Whole seconds a run", 1, 4, 10, 1)],
        [("--python", "The interpreter that serves", "/usr/bin/python3")])
    wrk = shutil.which("wrk")
    if wrk is None:
        raise common.Failure("wrk is missing: apt-get install wrk", common.UNAVAILABLE)
    if not os.access(options.python, os.X_OK):
        raise common.Failure(f"there is no {options.python}: apt-get install python3, or say --python PATH",
                             common.UNAVAILABLE)
    report = common.Report(options)
    pairs = common.run_pairs(options.rounds, lambda cached: measure(options, wrk, cached))
    rows = [(name, unit, common.estimate([plain[key] for plain, _ in pairs]),
             common.estimate([cached[key] for _, cached in pairs]),
             common.estimate([cached[key] / plain[key] for plain, cached in pairs]))
            for key, name, unit in ROWS]
    report.add("server", f"ThreadingHTTPServer, {CONNECTIONS} connections at a time: median [95 % interval, "
                         "or lowest and highest where there are fewer than 6 rounds]", COLUMNS, rows)
    report.notes.append("ratio: above 1 the cache is better for requests, below 1 for the others.")
    report.print()


if __name__ == "__main__":
    common.main_of(NAME, serve if sys.argv[1:] == ["--work"] else body)
