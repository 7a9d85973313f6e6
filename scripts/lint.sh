#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make lint: clang-format (differences are errors), clang-tidy over what is delivered (src, cache,
# cli) and bench/alternatives, the contexts of functions (check-contexts.sh), what atomics say that
# they pair with (check-pairings.py), shellcheck. make format: lint.sh --format, which rewrites the files as clang-format
# wants them.
# make check: lint.sh --changed, the same for the files that differ from the last commit, or that it changed where nothing
# differs; a tool that is not installed is left out. With it goes the order of folders (check-layers.sh). All of them check the
# words and links of the documents, and count dialect elsewhere, in the files at hand (check-docs.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folders=()
for folder in include src cache stat cli abt tests bench examples; do
    [[ ! -d $folder ]] || folders+=("$folder")
done
mapfile -t sources < <(find "${folders[@]}" -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' | sort)

# Keeps of the lines that are read those that name a changed file; the whole list where all is asked for.
only_changed() { cat; }
if [[ ${1:-} == --changed || ${1:-} == --list-changed ]]; then
    command -v git >/dev/null && git rev-parse --git-dir >/dev/null 2>&1 ||
        { echo "lint.sh: --changed needs git and its repository" >&2; exit 77; }
    changed=$({ git diff --name-only HEAD; git ls-files --others --exclude-standard; } | sort -u)
    [[ -n $changed ]] || changed=$(git diff --name-only HEAD~1 HEAD 2>/dev/null || true)
    [[ $1 == --changed ]] || { echo "$changed"; exit; }
    only_changed() { grep -Fx -f <(sed "p; s|^|$PWD/|; p; s|^$PWD/|./|" <<<"$changed") || true; }
    mapfile -t sources < <(printf '%s\n' "${sources[@]}" | only_changed)
fi

if [[ ${1:-} == --format ]]; then
    clang-format -i "${sources[@]}"
    exit
fi

# has TOOL: whether it is there. make lint insists on the two of clang.
has() {
    ! command -v "$1" >/dev/null || return 0
    echo "$1: not installed, left out"
    [[ $1 == shellcheck || $1 == python3 || ${mode:-all} == --changed ]] || status=1
    return 1
}

status=0 mode=${1:-all}
if ((${#sources[@]})) && has clang-format; then
    echo "clang-format: ${#sources[@]} files"
    clang-format --dry-run -Werror "${sources[@]}" || status=1
fi

# The flags are those of a clang build of the debug preset, which need not be there: it reads no header that only a build makes.
# The other architecture's files are not in it.
mapfile -t tidy < <(find src cache cli bench/alternatives/*.c -name '*.c' -o -name '*.cpp' | sort | only_changed)
if ((${#tidy[@]})) && has clang-tidy && has clang; then
    cmake --preset clang -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
    mapfile -t tidy < <(sed -n 's/^ *"file": "\(.*\)".*/\1/p' build/lint/compile_commands.json |
        grep -E "^$PWD/((src|cache|cli)/.*\.(c|cpp)|bench/alternatives/[a-z_]*\.c)$" | sort -u | only_changed)
    echo "clang-tidy: ${#tidy[@]} files"
    # One file a run: what this version remembers of a file's va_lists misleads it in the next.
    printf '%s\0' "${tidy[@]}" |
        xargs -0 -r -n 1 -P "$(nproc)" clang-tidy --quiet -p build/lint 2>build/tidy.log ||
        { status=1; grep -vE '^[0-9]+ warnings? (generated|treated as errors?)' build/tidy.log || true; }
fi

# One file's macros are another's errors: all of them, where one has changed.
if printf '%s\n' "${sources[@]}" | grep -qE '^(\./)?(src|abt)/' && has clang; then
    scripts/check-contexts.sh . || status=1
fi

# A comment at a field is about operations in other files: all of them, likewise.
if printf '%s\n' "${sources[@]}" | grep -qE '^(\./)?(src|cache|stat|abt)/' && has python3; then
    python3 scripts/check-pairings.py . || status=1
fi

mapfile -t scripts < <(
    grep -rlE --exclude-dir=build --exclude-dir=.git '^#!/bin/(ba)?sh|^# shellcheck shell=' . | sort | only_changed)
if ((${#scripts[@]})) && has shellcheck; then
    echo "shellcheck: ${#scripts[@]} files"
    shellcheck -x -e SC2015 "${scripts[@]}" || status=1
fi
[[ $mode != --changed ]] || scripts/check-layers.sh . || status=1

scripts/check-docs.sh . || status=1
mapfile -t prose < <({ printf '%s\n' "${sources[@]}"; find docs tests ./*.md -name '*.md'; } | only_changed)
dialect=$(scripts/check-docs.sh --count "${prose[@]}")
[[ -z $dialect ]] || printf 'lines of dialect (CONTRIBUTING.md, "Words"), by file:\n%s\n' "$dialect"
exit $status
