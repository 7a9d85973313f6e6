#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""BERT inference through PyTorch and libgomp, without and with the cache: the HuggingFace line of the paper's
table 1 (94 to 41 ms on 72 CPUs, with PyTorch 1.5). BERT base with random weights, one text of 64 tokens.

Two ways of asking: from the main thread, which keeps its OpenMP team from one inference to the next, and from
a new thread per request, as servers do, for which libgomp makes the team again each time. The team is as
large as there are CPUs (OMP_NUM_THREADS), also where PyTorch by itself would take fewer for hyperthreads.

Debian's python3-torch, and transformers in a virtual environment (SETUP below). Nothing is downloaded here:
the weights are random, and the libraries are told to stay offline.
"""
import ctypes
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import common  # noqa: E402

NAME = "bert"
TOKENS = 64
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1",
           "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false",
           "TRANSFORMERS_VERBOSITY": "error"}
SETUP = ("/usr/bin/python3 -m venv --system-site-packages {venv} && "
         "{venv}/bin/pip install transformers==4.33.3")  # 4.30 to 4.35 take Debian 12's torch 1.13


# --- the program: "bert --work LAYERS INFERENCES" -----------------------------------------------------------


def build_model(layers):
    import torch
    from transformers import BertConfig, BertModel
    torch.manual_seed(1)
    model = BertModel(BertConfig(num_hidden_layers=layers)).eval()
    tokens = torch.randint(0, model.config.vocab_size, (1, TOKENS))

    def infer():
        with torch.no_grad():
            return float(model(tokens).last_hidden_state.sum())
    return infer, torch.get_num_threads()


def from_main(infer):
    return infer()


def from_new_thread(infer):
    results = []
    thread = threading.Thread(target=lambda: results.append(infer()))
    thread.start()
    thread.join()
    return results[0]


def reused():
    try:  # struct thrum_cache_counters, thrum/cache.h: two 32-bit words, then created and reused
        return (ctypes.c_uint64 * 3).in_dll(ctypes.CDLL(None), "thrum_cache_counters")[2]
    except ValueError:
        return 0


def work(layers, inferences):
    infer, team = build_model(layers)
    result = {"team": team}
    for mode in (from_main, from_new_thread):
        mode(infer)  # to warm up
        before, wall, cpu = reused(), time.perf_counter(), time.process_time()
        sums = [mode(infer) for _ in range(inferences)]
        result[mode.__name__] = {"ms": (time.perf_counter() - wall) * 1e3 / inferences,
                                 "cpu_ms": (time.process_time() - cpu) * 1e3 / inferences,
                                 "reused": (reused() - before) / inferences, "sum": sums[-1]}
    print(json.dumps(result), flush=True)


# --- the measurement ----------------------------------------------------------------------------------------


def interpreter_of(venv):
    """The virtual environment's interpreter; what is missing in one line."""
    setup = SETUP.format(venv=os.path.normpath(venv))
    python = os.path.join(venv, "bin/python")
    if not os.access("/usr/bin/python3", os.X_OK):
        raise common.Failure("Debian's python3 is missing: apt-get install python3 python3-torch",
                             common.UNAVAILABLE)
    for command, module, remedy in (("/usr/bin/python3", "torch", "apt-get install python3-torch"),
                                    (python, "transformers", setup)):
        probe = ("import importlib.util as u, sys; sys.exit(0 if u.find_spec(sys.argv[1]) else 1)", module)
        if not os.access(command, os.X_OK) or subprocess.run([command, "-c", *probe], check=False,
                                                             env=common.environment()).returncode != 0:
            raise common.Failure(f"{module} is missing: {remedy}", common.UNAVAILABLE)
    return python


def measure(options, python, cached):
    words = ["--work", str(options.layers), str(options.inferences)]
    answer = subprocess.run([python, os.path.realpath(__file__), *words],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                            env=common.environment(options.library if cached else None, **OFFLINE,
                                                   OMP_NUM_THREADS=str(len(os.sched_getaffinity(0)))))
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines() or ["no output"]
        raise common.Failure(f"the measuring process failed: {lines[-1][:200]}")
    result = json.loads(answer.stdout.splitlines()[-1])
    common.check_reuse(cached, result["from_new_thread"]["reused"])
    return result


def same_results(pairs, mode):
    """Equal up to rounding: how a sum is split among the team's threads is libgomp's affair."""
    sums = [result[mode]["sum"] for pair in pairs for result in pair]
    if max(sums) - min(sums) > 1e-2 + 1e-4 * abs(sums[0]):
        raise common.Failure(f"inferences do not agree: {min(sums)} to {max(sums)}")


COLUMNS = [("mode", "asked from", "", 0), ("default_ms", "default", "ms/inference", 1),
           ("cache_ms", "cache", "ms/inference", 1), ("ratio", "wall", "cache/default", 3),
           ("default_cpu_ms", "default CPU", "ms/inference", 1),
           ("cache_cpu_ms", "cache CPU", "ms/inference", 1),
           ("cpu_ratio", "CPU", "cache/default", 3), ("reused", "reused", "threads/inference", 2)]


def row(pairs, mode, label):
    same_results(pairs, mode)

    def both(key):
        return ([plain[mode][key] for plain, _ in pairs], [cached[mode][key] for _, cached in pairs])

    def ratio(key):
        return common.estimate([cached / plain for plain, cached in zip(*both(key))])
    wall, cpu = ([common.estimate(values) for values in both(key)] for key in ("ms", "cpu_ms"))
    return (label, *wall, ratio("ms"), cpu[0][0], cpu[1][0], ratio("cpu_ms"),
            common.estimate(both("reused")[1])[0])


def body():
    build = os.path.normpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
    options = common.read_options(
        NAME, "BERT inference, from the main thread and from a new one each, without and with the cache.",
        [("--rounds", "Pairs of processes", 1, 7, 15, 1),
         ("--inferences", "Inferences of each kind a process", 3, 20, 50, 1),
         ("--layers", "Layers of the model; BERT base has 12", 2, 12, 12, 1)],
        [("--venv", "A virtual environment with transformers", os.path.join(build, "bert"))])
    python = interpreter_of(options.venv)
    report = common.Report(options)
    pairs = common.run_pairs(options.rounds, lambda cached: measure(options, python, cached))
    size = "12 layers" if options.layers == 12 else f"{options.layers} instead of 12 layers"
    report.add("bert", f"BERT base ({size}), batch 1, {TOKENS} tokens: median "
                       "[95 % interval, or lowest and highest where there are fewer than 6 rounds]", COLUMNS,
               [row(pairs, "from_main", "main thread"), row(pairs, "from_new_thread", "a new thread")])
    report.notes.append("cache/default: below 1 the cache is faster. "
                        f"PyTorch's team: {pairs[0][0]['team']} threads.")
    report.notes.append("The paper, 72 CPUs, PyTorch 1.5: 94 to 41 ms (cache/default 0.436).")
    report.print()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*map(int, sys.argv[2:4]))
    else:
        common.main_of(NAME, body)
