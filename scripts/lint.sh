#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make lint: clang-format (differences are errors), clang-tidy over what is delivered (src, cache,
# cli), shellcheck. make format: lint.sh --format, which rewrites the files as clang-format wants them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folders=()
for folder in include src cache cli tests bench examples; do
    [[ ! -d $folder ]] || folders+=("$folder")
done
mapfile -t sources < <(find "${folders[@]}" -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' | sort)

if [[ ${1:-} == --format ]]; then
    clang-format -i "${sources[@]}"
    exit
fi

status=0
echo "clang-format: ${#sources[@]} files"
clang-format --dry-run -Werror "${sources[@]}" || status=1

# The flags are those of a clang build of the debug preset, which need not be there: it reads no header that only a build makes.
# The other architecture's files are not in it.
cmake --preset clang -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
mapfile -t tidy < <(sed -n 's/^ *"file": "\(.*\)".*/\1/p' build/lint/compile_commands.json |
    grep -E "^$PWD/(src|cache|cli)/.*\.(c|cpp)$" | sort -u)
echo "clang-tidy: ${#tidy[@]} files"
# One file a run: what this version remembers of a file's va_lists misleads it in the next.
printf '%s\0' "${tidy[@]}" |
    xargs -0 -r -n 1 -P "$(nproc)" clang-tidy --quiet -p build/lint 2>build/tidy.log ||
    { status=1; grep -vE '^[0-9]+ warnings? (generated|treated as errors?)' build/tidy.log || true; }

if command -v shellcheck >/dev/null; then
    mapfile -t scripts < <(
        grep -rlE --exclude-dir=build --exclude-dir=.git '^#!/bin/(ba)?sh|^# shellcheck shell=' . | sort)
    echo "shellcheck: ${#scripts[@]} files"
    shellcheck -x -e SC2015 "${scripts[@]}" || status=1
else
    echo "shellcheck: not installed, left out"
fi
exit $status
