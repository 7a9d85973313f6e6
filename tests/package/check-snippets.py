#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ctest: the examples in the public headers, the documents and the manual pages compile, and so do the prototypes
in the manual pages' synopses, beside the headers that they repeat. Each public function of libthrum stands in a synopsis,
each page of section 3 has an example, and each struct that a page shows has the members that it has in the headers.

    check-snippets.py SOURCE_FOLDER COMPILER_FOR_C COMPILER_FOR_C++ [--print FILE]

Examples are: in a header, lines of a comment that stand five columns behind its asterisk (each header has one, but for
those in hpp/detail); in *.md, what stands between ```c or ```cpp and ```; in a manual page, from .EX to .EE where there is
C in it. One that has a main() is compiled as it is. Any other is a fragment: functions and static variables are left where
they are, the rest goes into a function, and what it uses without having declared it stands in PREAMBLE, or PREAMBLE_CXX,
which is precompiled: it takes longer than all fragments.
A block that begins with ```c sketch or ```cpp sketch is none: it sets single lines of a program beside each other.

With --print it prints the first whole program of FILE instead.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

PREAMBLE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
%s
struct request { int number; };
extern thrum_channel_t requests;
extern thrum_event_t stop;
extern thrum_mutex_t mutex;
extern thrum_t printer;
void serve(struct request *request);
void work(void *arg);
"""
PREAMBLE_CXX = """
#include <thrum/thrum.hpp>

#include <array>
#include <cstdio>
#include <string>
#include <vector>
"""
NOT_OF_LIBTHRUM = {"cache.h"}
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wno-unused-parameter"]
C, CXX = ["-std=c11", *WARNINGS], ["-std=c++20", *WARNINGS]


def of_header(text):
    blocks, block = [], []
    for line in text.splitlines() + [""]:
        inside = re.match(r"(?:/| )\*     (.*)", line)
        if inside:
            block.append(inside.group(1))
        elif block and line.rstrip() == " *":
            block.append("")
        elif block:
            blocks.append("\n".join(block))
            block = []
    return blocks


def of_document(text):
    return re.findall(r"^```c(?:pp)?\n(.*?)^```", text, re.M | re.S)


def plain(roff):
    """The text of unadorned lines of a manual page."""
    roff = re.sub(r"\\f.|\\&|\\c", "", roff)
    for escape, character in ((r"\-", "-"), (r"\(aq", "'"), (r"\(dq", '"'), (r"\e", "\\")):
        roff = roff.replace(escape, character)
    return roff


def of_page(text):
    blocks = [plain(block) for block in re.findall(r"^\.EX\n(.*?)^\.EE", text, re.M | re.S)]
    return [block for block in blocks if re.search(r"#include|thrum_\w+\(", block)]


def synopsis(text):
    """The declarations, without their fonts: in .BI and .B lines words stand apart or in quotes."""
    section = re.search(r"^\.SH SYNOPSIS\n(.*?)^\.SH", text, re.M | re.S).group(1)
    lines = []
    for line in section.splitlines():
        macro = re.match(r"\.(B|BI|BR|RI|I) (.*)", line)
        if macro:
            words = re.findall(r'"([^"]*)"|(\S+)', macro.group(2))
            glue = " " if macro.group(1) in ("B", "I") else ""
            lines.append(plain(glue.join(quoted or bare for quoted, bare in words)))
    return "\n".join(lines)


STRUCT = re.compile(r"struct (thrum_\w+) \{\n(.*?)^\};", re.M | re.S)


def of_struct(body):
    """The members, one a line, whatever stands beside them."""
    return [line.strip() for line in re.sub(r"/\*.*?\*/", "", body, flags=re.S).splitlines() if line.strip()]


def without_commands(block):
    return "\n".join(line for line in block.splitlines() if not re.match(r"(cc|c\+\+|\$) ", line))


def program(block, preamble):
    """A fragment as something that compiles."""
    if "int main(" in block:
        return block
    outside, inside, depth = [], [], None
    for line in block.splitlines():
        if depth is None and re.match(r"static |struct \w+ \{|#include", line):
            depth = outside
        elif depth is None and line.strip():
            depth = inside
        if depth is None:
            continue
        depth.append(line)
        # An outer declaration ends with a line of its own column; what is inside goes on to its next blank line.
        if depth is inside or re.match(r"\}|#include|\S.*;", line):
            depth = None
    body = "\n".join(inside)
    return (preamble + "\n".join(outside) +
            "\nint main(int argc, char **argv) {\n(void)argc, (void)argv;\n%s\nreturn 0;\n}\n" % body)


def precompile_preamble(cxx, include, folder):
    """Returns the options that make it part of a program in C++. Without the precompiled one the header itself is read."""
    header = pathlib.Path(folder, "preamble.hpp")
    header.write_text(PREAMBLE_CXX)
    subprocess.run([cxx, "-x", "c++-header", *CXX, "-I", include, header, "-o", f"{header}.gch"], capture_output=True)
    return ["-include", header]


def compiles(text, command, include, folder, name):
    path = pathlib.Path(folder, "snippet")
    path.write_text(text)
    done = subprocess.run([*command, "-fsyntax-only", "-I", include, path], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name}: does not compile:\n{done.stderr}\nas:\n{text}")
    return done.returncode == 0


def main():
    source = pathlib.Path(sys.argv[1])
    if "--print" in sys.argv:
        text = pathlib.Path(sys.argv[-1]).read_text()
        print(next(without_commands(block) for block in of_header(text) if "int main(" in block))
        return 0
    cc, cxx = sys.argv[2:4]
    include = source / "include"
    names = sorted(header.name for header in (include / "thrum").glob("*.h"))
    preamble = PREAMBLE % "\n".join(f"#include <thrum/{name}>" for name in names)
    count, good = 0, True
    with tempfile.TemporaryDirectory() as folder:

        with_preamble = precompile_preamble(cxx, include, folder)

        def check(text, name, language="c", options=()):
            nonlocal count, good
            count += 1
            command = [cxx, "-x", "c++", *CXX, *options] if language == "c++" else [cc, "-x", "c", *C]
            good = compiles(text, command, include, folder, name) and good

        def check_example(block, name, language):
            """A program by itself, or a fragment with what it needs."""
            if language == "c" or "int main(" in block:
                check(program(block, preamble), name, language)
            else:
                check(program(block, ""), name, language, with_preamble)

        for path in [*sorted((include / "thrum").glob("*.h*")), *sorted((include / "thrum" / "hpp").glob("*.hpp"))]:
            is_cxx = path.suffix == ".hpp"
            blocks = of_header(path.read_text())
            if not blocks:
                print(f"{path.name}: no example")
                good = False
            for block in blocks:
                check_example(without_commands(block), path.name, "c++" if is_cxx else "c")
        for path in [source / "README.md", *sorted((source / "docs").rglob("*.md"))]:
            for block in of_document(path.read_text()):
                is_cxx = "std::" in block or "thrum::" in block
                check_example(block, path.name, "c++" if is_cxx else "c")
        headers = "".join((include / "thrum" / name).read_text() for name in names)
        structs = {name: of_struct(body) for name, body in STRUCT.findall(headers)}
        code = re.sub(r"/\*.*?\*/", "", "".join((include / "thrum" / name).read_text()
                                                for name in names if name not in NOT_OF_LIBTHRUM), flags=re.S)
        functions = set(re.findall(r"^[a-z]\w[\w \*]*?\b(thrum_\w+)\(", code, re.M))
        described = set()
        for path in sorted((source / "docs" / "man").glob("*.[37]")):
            text = path.read_text()
            if path.suffix == ".3":
                declarations = synopsis(text)
                if not re.search(r"thrum_\w+\(", declarations):
                    print(f"{path.name}: nothing in its synopsis")
                    good = False
                check(declarations + "\n", f"{path.name}, SYNOPSIS")
                check(declarations + "\n", f"{path.name}, SYNOPSIS", "c++")
                described.update(re.findall(r"\b(thrum_\w+)\(", declarations))
                examples = re.search(r"^\.SH EXAMPLES\n(.*?)^\.SH", text, re.M | re.S)
                if not examples or not of_page(examples.group(1)):
                    print(f"{path.name}: no example")
                    good = False
            for name, body in STRUCT.findall(plain(text)):
                if of_struct(body) != structs.get(name):
                    print(f"{path.name}: struct {name} is another one than in the headers")
                    good = False
            for block in of_page(text):
                check(program(without_commands(block), preamble), path.name)
    if not functions or functions - described:
        print("in no synopsis:", *sorted(functions - described))
        good = False
    print(f"{count} examples and synopses of {len(functions)} functions")
    return 0 if good and count > 0 else 1


sys.exit(main())
