# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks in Python share. All: how one fails and reads its command line. server and bert: options, pairs of
runs without and with the library, medians with their intervals, and a report as a table or as JSON; the same as common.hpp, to
the letter of the JSON. common.hpp says how they measure.
"""
import argparse
import json
import math
import os
import platform
import sys

UNAVAILABLE = 77  # the exit code of what cannot run here, after one line that says why


class Failure(Exception):
    def __init__(self, what, code=1):
        super().__init__(what)
        self.code = code


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Failure(f"{message}; see {self.prog} --help", 2)


def _number(kind, least):
    def convert(text):
        value = kind(text)
        if not (least <= value < math.inf):
            raise ValueError
        return value
    convert.__name__ = f"number from {least} up,"  # argparse: "invalid number from 1 up, value: 'x'"
    return convert


def read_options(name, about, numbers, texts=()):
    """numbers: (option, help, quick, usual, full, least); texts: (option, help, default)."""
    parser = Parser(prog=name, description=about, allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="Print JSON instead of tables")
    parser.add_argument("--save", metavar="FILE", help="Write JSON into a file, besides what is printed")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="A taste, to see that it works")
    size.add_argument("--full", action="store_true", help="Longer than usual")
    here = os.path.dirname(os.path.realpath(__file__))
    parser.add_argument("--library", metavar="PATH", default=os.path.join(here, "../lib/libthrum-cache.so"),
                        help="The libthrum-cache.so to measure")
    for option, text, quick, usual, full, least in numbers:
        parser.add_argument(option, metavar="N", type=_number(type(usual), least),
                            help=f"{text} ({usual}; quick {quick}, full {full})")
    for option, text, default in texts:
        parser.add_argument(option, metavar="PATH", default=default, help=f"{text} ({default})")
    options = parser.parse_args()
    options.name = name
    options.settings = {}
    for option, _, quick, usual, full, _ in numbers:
        key = option[2:].replace("-", "_")
        if getattr(options, key) is None:
            setattr(options, key, quick if options.quick else full if options.full else usual)
        options.settings[option[2:]] = getattr(options, key)
    if not os.access(options.library, os.R_OK):
        raise Failure(f"{options.library}: there is no such library; build it first, or say --library PATH")
    options.library = os.path.realpath(options.library)
    if " " in options.library or ":" in options.library:
        raise Failure(f"{options.library}: the loader takes no path with a space or a colon in LD_PRELOAD")
    if options.save is not None:
        with open(options.save, "w", encoding="utf-8"):  # now, and not when all has been measured
            pass
    return options


def main_of(name, body):
    try:
        body()
        sys.stdout.flush()
    except (Failure, OSError) as failure:
        print(f"{name}: {failure}", file=sys.stderr)
        sys.exit(getattr(failure, "code", 1))


def environment(library=None, **more):
    """This process's, without LD_PRELOAD, THRUM_... and PYTHON..., and with the library if one is given."""
    kept = {name: value for name, value in os.environ.items()
            if name != "LD_PRELOAD" and not name.startswith(("THRUM_", "PYTHON"))}
    if library is not None:
        kept["LD_PRELOAD"] = library
    return {**kept, **more}


def check_reuse(cached, reused):
    """A measurement in which the cache was meant to reuse threads and did not is an error, not a number."""
    if cached and reused == 0:
        raise Failure("the library has not reused a thread; see why with THRUM_CACHE_VERBOSE=1")
    if not cached and reused > 0:
        raise Failure("a thread was reused where none should have been")


def run_pairs(rounds, run):
    """Calls run(False) and run(True), which is with the library, `rounds` times; which is first alternates."""
    pairs = []
    for turn in range(rounds):
        progress(f"pair {turn + 1} of {rounds}")
        order = (False, True) if turn % 2 == 0 else (True, False)
        result = {cached: run(cached) for cached in order}
        pairs.append((result[False], result[True]))
    progress("")
    return pairs


def estimate(values):
    """(median, low, high): the 95 % interval of the median; the lowest and the highest of fewer than six."""
    values = sorted(values)
    n, below, cut = len(values), 0.0, 0
    while cut <= n // 2:
        below += math.comb(n, cut) * 0.5 ** n
        if below > 0.025:
            break
        cut += 1
    cut = max(cut, 1)
    return ((values[(n - 1) // 2] + values[n // 2]) / 2, values[cut - 1], values[n - cut])


def progress(line):
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


class Report:
    def __init__(self, options):
        self.options = options
        self.load_before = _load()
        self.tables = {}
        self.notes = []

    def add(self, key, title, columns, rows):
        """columns: (key, heading, unit, decimals); a row has a text, a number or an estimate for each."""
        self.tables[key] = (title, columns, rows)

    def print(self):
        json_text = self._json()
        if self.options.json:
            print(json_text)
        else:
            self._print_text()
        if self.options.save is not None:
            with open(self.options.save, "w", encoding="utf-8") as file:
                file.write(json_text + "\n")

    def _machine(self):
        return {"cpu": _cpu(), "cores": len(os.sched_getaffinity(0)),
                "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
                "libc": " ".join(platform.libc_ver()), "load_before": self.load_before, "load_after": _load()}

    def _json(self):
        tables = {}
        for key, (title, columns, rows) in self.tables.items():
            tables[key] = {"title": title, "units": {column[0]: column[2] for column in columns},
                           "rows": [_json_row(columns, row) for row in rows]}
        return json.dumps({"benchmark": self.options.name, "machine": self._machine(),
                           "library": {"path": self.options.library, "build": _build(self.options.library)},
                           "settings": self.options.settings, "tables": tables, "notes": self.notes},
                          indent=1, ensure_ascii=False)

    def _print_text(self):
        machine = self._machine()
        cores = f"{machine['cores']} core" + ("s" if machine["cores"] != 1 else "")
        print(self.options.name)
        print(f"machine: {machine['cpu']}, {cores}, {machine['kernel']}, {machine['libc']}")
        print(f"load average before {self.load_before}, after {machine['load_after']}")
        print(f"library: {_build(self.options.library)} build, {self.options.library}")
        print("settings: " + ", ".join(f"{key} {value}" for key, value in self.options.settings.items()))
        for title, columns, rows in self.tables.values():
            _print_table(title, columns, rows)
        print("\n" + "\n".join(self.notes) if self.notes else "", end="\n" if self.notes else "")


def _load():
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def _cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(": ", 1)[1].strip()
    return "unknown CPU"


def _build(library):
    with open(library, "rb") as file:
        return "debug" if b"THRUM_SKIP" in file.read() else "release"


def _json_row(columns, row):
    values = {}
    for (key, *_), cell in zip(columns, row):
        if isinstance(cell, tuple):
            values[key], values[key + "_low"], values[key + "_high"] = cell
        else:
            values[key] = cell
    return values


def _text(cell, decimals):
    if isinstance(cell, tuple):
        median, low, high = (f"{value:.{decimals}f}" for value in cell)
        return f"{median} [{low}, {high}]"
    return cell if isinstance(cell, str) else f"{cell:.{decimals}f}"


def _print_table(title, columns, rows):
    lines = [[column[1] for column in columns], [column[2] for column in columns]]
    lines += [[_text(cell, column[3]) for cell, column in zip(row, columns)] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    print(f"\n{title}\n")
    for line in lines:
        padded = [cell.ljust(width) if i == 0 else cell.rjust(width)
                  for i, (cell, width) in enumerate(zip(line, widths))]
        print("  ".join(padded))
