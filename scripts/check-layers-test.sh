#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: check-layers.sh finds what is against the order. A tree of small files is made, and a line added to one at a time.
# Usage: check-layers-test.sh SOURCE_FOLDER
set -euo pipefail
check=$1/scripts/check-layers.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

mkdir -p "$tree"/{include/thrum,src/{base,os,sched,arch/x86_64},cache/arch/x86_64,stat,cli/stat,cli/tools,abt,bench/alternatives}
sources=(src/base/atomic.h src/os/lock.h src/sched/worker.c src/arch/x86_64/arch_tls.h cache/cache.h cache/arch/x86_64/jump.S
    stat/probe.h cli/elf.cpp cli/tools/text.hpp abt/pool.c bench/alternatives/mode.c)
for file in "${sources[@]}"; do echo '#include <stddef.h>' >"$tree/$file"; done

failed=0
refuses() { # FILE LINE: it must be named
    local output
    echo "$2" >>"$tree/$1"
    if output=$(bash "$check" "$tree" 2>&1) || [[ $output != *"$1"*:* ]]; then
        echo "not refused: '$2' in $1: $output" >&2
        failed=1
    fi
    sed -i '$d' "$tree/$1"
}
accepts() {
    local output
    echo "$2" >>"$tree/$1"
    output=$(bash "$check" "$tree" 2>&1) || { echo "refused: '$2' in $1: $output" >&2; failed=1; }
    sed -i '$d' "$tree/$1"
}

accepts src/sched/worker.c '#include "os/lock.h"'
refuses src/os/lock.h '#include "sched/worker.h"'
refuses cache/cache.h '#include "sched/worker.h"'
refuses cli/elf.cpp '#include "os/lock.h"'
accepts cli/elf.cpp '#include "base/atomic.h"'
accepts cli/elf.cpp '#include "tools/text.hpp"'
refuses cli/tools/text.hpp '#include "stat/report.hpp"'
refuses src/sched/worker.c '#include "elsewhere/thing.h"'
refuses abt/pool.c '#include "sched/worker.h"'
accepts bench/alternatives/mode.c '#include "kthread/fresh/fresh.h"'
accepts bench/alternatives/mode.c '#include "standby.h"'
refuses bench/alternatives/mode.c '#include "sched/worker.h"'

accepts src/base/atomic.h '#define load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)'
refuses src/sched/worker.c '    __atomic_thread_fence(__ATOMIC_SEQ_CST);'
refuses cli/elf.cpp '    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);'
refuses abt/pool.c '    return __sync_fetch_and_add(&word, 1);'
refuses bench/alternatives/mode.c '    return __sync_fetch_and_add(&word, 1);'
refuses stat/probe.h '    atomic_signal_fence(memory_order_seq_cst);'
accepts cli/elf.cpp '    std::atomic_thread_fence(std::memory_order_acquire);'

accepts src/arch/x86_64/arch_tls.h '#ifdef __x86_64__'
accepts cache/arch/x86_64/jump.S '#ifdef __x86_64__'
refuses src/sched/worker.c '#ifdef __x86_64__'
refuses cache/cache.h '#if defined(__aarch64__)'
refuses stat/probe.h '#if defined(__i386__)'
refuses bench/alternatives/mode.c '#ifdef __x86_64__'
refuses cli/elf.cpp '#ifdef __riscv'

# The 61st file of a folder, not the 60th; files of folders inside do not count.
mkdir "$tree/src/sched/pool"
touch "$tree/src/sched/pool/deque.c" "$tree"/src/sched/file{2..60}.c
accepts src/sched/worker.c '/* the first of 60 */'
touch "$tree/src/sched/file61.c"
refuses_tree() { # PART: the folder must be named
    local output
    ! output=$(bash "$check" "$tree" 2>&1) && [[ $output == *"$1"* ]] || { echo "not refused: $1: $output" >&2; failed=1; }
}
refuses_tree 'src/sched: 61 files'
exit $failed
