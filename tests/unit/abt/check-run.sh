#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: `thrum run --argobots` puts libabt.so.1 in the place of the library that a program was linked with, and says in one line
# what of the program it does not cover. The library that is replaced is a stand-in that is made here.
# Usage: check-run.sh THRUM HEADER CC
set -euo pipefail
thrum=$(realpath "$1") header=$(realpath "$2") cc=$3
fail() { echo "$*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

cat > original.c <<'END'
#include <stdlib.h>
#include <unistd.h>
int ABT_init(int argc, char **argv);
int ABT_init(int argc, char **argv) { (void)argc, (void)argv; exit(write(1, "the original\n", 13) != 13); }
#define NONE(name) int name(void); int name(void) { return 99; }
NONE(ABT_finalize) NONE(ABT_xstream_self) NONE(ABT_xstream_get_main_pools) NONE(ABT_thread_create) NONE(ABT_thread_free)
NONE(ABT_thread_yield) NONE(ABT_tool_register_thread_callback) NONE(ABT_unheard_of)
END
cat > program.c <<'END'
#include <abt.h>
static int runs;
static void count(void *arg) { (void)arg; runs++; ABT_thread_yield(); runs++; }
int ABT_unheard_of(void);
int main(void) {
    ABT_xstream stream;
    ABT_pool pool;
    ABT_thread thread;
    if (ABT_init(0, 0) != 0 || ABT_xstream_self(&stream) != 0 || ABT_xstream_get_main_pools(stream, 1, &pool) != 0)
        return 1;
    if (ABT_thread_create(pool, count, 0, ABT_THREAD_ATTR_NULL, &thread) != 0 || ABT_thread_free(&thread) != 0)
        return 2;
#ifdef TOOL
    if (ABT_tool_register_thread_callback(0, 0, 0) != ABT_ERR_FEATURE_NA)
        return 3;
#endif
#ifdef UNKNOWN
    if (runs == 0)
        ABT_unheard_of();
#endif
    return ABT_finalize() != 0 || runs != 2 || printf("%d\n", runs) != 2;
}
END
"$cc" -shared -fPIC -o libabt.so.1 -Wl,-soname,libabt.so.1 original.c
build() { "$cc" -I"${header%/*}" "${@:2}" -o "$1" program.c libabt.so.1 "-Wl,-rpath,$scratch"; }
build plain
build tool -DTOOL
build unknown -DUNKNOWN

[[ $(./plain) == "the original" ]] || fail "the stand-in is not linked"
[[ $("$thrum" run --argobots -- ./plain 2> said) == 2 ]] || fail "it was not replaced: $(cat said)"
[[ ! -s said ]] || fail "nothing is uncovered, but: $(cat said)"
[[ $("$thrum" run --argobots -- ./tool 2> said) == 2 ]] || fail "$(cat said)"
[[ $(cat said) == *"does not cover: ABT_tool_register_thread_callback" && $(wc -l < said) == 1 ]] || fail "said: $(cat said)"
[[ $("$thrum" run --argobots -- ./unknown 2> said) == 2 ]] || fail "$(cat said)"
[[ $(cat said) == *"ABT_unheard_of (unknown)" && $(wc -l < said) == 1 ]] || fail "said: $(cat said)"
echo 'int ABT_init(void); int ABT_init(void) { return 0; } int main(void) { return ABT_init(); }' > static.c
"$cc" -rdynamic -o static static.c
"$thrum" run --argobots -- ./static 2> said
[[ $(cat said) == *"has Argobots built in"* ]] || fail "said: $(cat said)"

# What else can be wrong gets one line, too.
says_in_one_line() { # text, exit code, word of the command line...
    local code=0
    "$thrum" run --argobots "${@:3}" > /dev/null 2> said || code=$?
    [[ $code == "$2" && $(cat said) == *"$1"* && $(wc -l < said) == 1 ]] || fail "${*:3}: $code, said: $(cat said)"
}
echo 'int main(void) { return 0; }' > unrelated.c
"$cc" -o unrelated unrelated.c
says_in_one_line "./unrelated does not use Argobots" 0 -- ./unrelated
says_in_one_line "No such file or directory" 127 -- ./missing
says_in_one_line "is not executable" 126 -- ./unrelated.c
says_in_one_line "leave the cache's options out" 2 --off -- ./plain
says_in_one_line "leave the cache's options out" 2 --max-idle 3 -- ./plain
if "$cc" -static -o unmoved unrelated.c 2> /dev/null; then
    says_in_one_line "is statically linked" 125 -- ./unmoved
fi
mkdir -p alone/bin
cp "$thrum" alone/bin/
thrum=alone/bin/thrum says_in_one_line "cannot find libabt.so.1" 125 -- ./plain

# A child of another kind of program is as without: musl's loader and that of 32-bit programs say nothing.
cat > child.c <<'END'
#include <stdio.h>
int main(void) { return printf("ran\n") != 4; }
END
expect_unharmed() { # compiler...
    if ! "$@" -o child child.c 2> /dev/null || ! ./child > /dev/null; then
        echo "no such child tried: '$*' makes none that runs here"
        return 0
    fi
    [[ $("$thrum" run --argobots -- /bin/sh -c './child; exit $?' 2> said) == ran && ! -s said ]] || fail "$*: $(cat said)"
}
expect_unharmed "$cc"
expect_unharmed musl-gcc
[[ $(uname -m) != x86_64 ]] || expect_unharmed "$cc" -m32
echo "replaced, and what is not covered is said"
