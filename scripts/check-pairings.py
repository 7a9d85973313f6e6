#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ctest (build.pairings) and a step of make lint: an ordered atomic says what it pairs with.

An operation or fence of src/base/atomic.h that is not relaxed, or a fence of src/os/membarrier.h, has a comment with the
word "pairs" or "pair":

- beside the statement that it is in, or directly above it;
- or above a function of at most three lines;
- or at the field or variable that it accesses, declared in the same file or a header that this includes;
- or one that says how many of the next ones it is about, too: "This and the next pair with ...", "This and the next two ...".

Usage: check-pairings.py SOURCES [FILE...], the files relative to SOURCES; all of src, cache, stat and abt unless told
"""

import pathlib
import re
import sys

FOLDERS = ["src", "cache", "stat", "abt"]
HOMES = {"src/base/atomic.h", "src/os/membarrier.h"}  # where the operations are defined
OPERATION = re.compile(r"\b(?:(?:load|store|exchange|fetch_(?:add|sub|or|and)|cas)_(?:acquire|release|acq_rel|seq_cst)"
                       r"|fence_(?:seq_cst|compiler|frequent|rare))\(")
PAIRS = re.compile(r"\bpairs?\b", re.IGNORECASE)
NEXT = re.compile(r"\bthe next(?: (two|three|four|five|six))?\b")
NUMBERS = {None: 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
SHORT = 3  # lines of a function's body that the comment above the function is about
PART = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


class Source:
    """A file's lines, the code of each apart from its comment."""

    def __init__(self, text):
        self.code, self.comment = self.split(text)

    @staticmethod
    def split(text):
        code, comment, end = [], [], 0
        for part in PART.finditer(text):
            is_comment = part.group().startswith("/")
            code.append(text[end:part.start()])
            comment.append(re.sub(r"[^\n]", " ", text[end:part.start()]))
            blank = re.sub(r"[^\n]", " ", part.group())
            code.append(blank if is_comment else '""' + blank[2:])
            comment.append(part.group() if is_comment else blank)
            end = part.end()
        code.append(text[end:])
        comment.append(re.sub(r"[^\n]", " ", text[end:]))
        return "".join(code).split("\n"), "".join(comment).split("\n")

    def above(self, line):
        """The comment in the lines directly above, if these have no code."""
        at = line - 1
        while at >= 0 and not self.code[at].strip() and self.comment[at].strip():
            at -= 1
        return " ".join(self.comment[at + 1:line])

    def statement(self, line):
        """The first and the last line of the statement that the line is in."""
        first = last = line
        while first > 0 and self.code[first - 1].strip() and not re.search(r"([;{}:]|^\s*#.*[^\\])\s*$", self.code[first - 1]):
            first -= 1
        while last + 1 < len(self.code) and not re.search(r"[;{}]\s*$", self.code[last]) and self.code[last].strip():
            last += 1
        return first, last

    def about(self, line):
        """The comments beside the statement and above it."""
        first, last = self.statement(line)
        beside = " ".join(self.comment[first:last + 1])
        after = last + 1  # a comment that began beside it
        while after < len(self.code) and not self.code[after].strip() and "/*" not in self.comment[after] and \
                "*/" in " ".join(self.comment[after:after + 4]) and "*/" not in self.comment[last].rpartition("/*")[2]:
            beside += self.comment[after]
            after += 1
        return self.above(first) + " " + beside

    def struct_at(self, line):
        """The tag of the struct that a field is in, or what else is outside it."""
        def depth(text):
            return len(text) - len(text.lstrip())
        at = line
        while at > 0 and not (self.code[at].rstrip().endswith("{") and depth(self.code[at]) < depth(self.code[line])):
            at -= 1
        names = re.findall(r"\w+", self.code[at])
        return names[names.index("struct") + 1] if "struct" in names[:-1] else ""

    def above_short_function(self, line):
        """The comment above the function, if that is short."""
        first = last = line
        while first > 0 and not (self.code[first][:1].strip() and self.code[first].rstrip().endswith("{")):
            first -= 1
        while last < len(self.code) and self.code[last][:1] != "}":
            last += 1
        if last - first - 1 > SHORT:
            return ""
        while first > 0 and self.code[first - 1].strip() and not re.search(r"[;}]\s*$", self.code[first - 1]):
            first -= 1
        return self.above(first)


def accessed(code, start):
    """The field or variable that the operation accesses, and the name before it: the last two of the first argument."""
    depth, argument = 1, ""
    for character in code[start:]:
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 or (depth == 1 and character == ","):
            break
        argument += character
    names = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[[^][]*\]", "", argument))
    return ["", *names][-2:] if names else ["", ""]


class Tree:
    def __init__(self, root):
        self.root, self.sources, self.reach = root, {}, {}

    def source(self, path):
        if path not in self.sources:
            self.sources[path] = Source((self.root / path).read_text())
        return self.sources[path]

    def includes(self, path):
        """The file, and what it includes by quotes, wherever that is."""
        if path in self.reach:
            return self.reach[path]
        self.reach[path] = found = {path}
        folder = pathlib.PurePosixPath(path).parent
        for line in (self.root / path).read_text().split("\n"):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not match:
                continue
            for place in (folder, "src", "src/arch/x86_64", "cache/arch/x86_64", "stat/arch/x86_64", "."):
                header = str(pathlib.PurePosixPath(place) / match.group(1))
                if (self.root / header).is_file() and header not in HOMES:
                    found |= self.includes(header)
                    break
        return found

    def at_field(self, path, owner, name):
        """Whether a declaration of this name says what it pairs with: that in the struct which the owner is called after, if
        there is one."""
        declared = re.compile(r"^\s*(?:_Alignas\(\w+\)\s*)?(?:[A-Za-z_]\w*[\s*]+)+(?:\w+(?:\[[^]]*\])*\s*,\s*\**)*\**" + name +
                              r"\s*(?:\)\([^()]*\)|\[[^]]*\])*\s*(?:[,;=]|$)")
        if not name:
            return False
        any_says = own_says = None
        for file in self.includes(path):
            source = self.source(file)
            for line, code in enumerate(source.code):
                if name in code and "return" not in code and declared.match(code):
                    says = bool(PAIRS.search(source.about(line)))
                    any_says = any_says or says
                    if owner and re.search(r"(^|_)" + owner.removesuffix("s") + "$", source.struct_at(line)):
                        own_says = own_says or says
        return any_says if own_says is None else own_says

    def faults(self, path):
        source, covered, faults = self.source(path), 0, []
        if path in HOMES:
            return faults
        for line, code in enumerate(source.code):
            if code[:1] == "}":
                covered = 0
            if code.lstrip().startswith("#"):
                continue
            for operation in OPERATION.finditer(code):
                comment = source.about(line)
                if PAIRS.search(comment):
                    more = NEXT.search(comment)
                    covered = NUMBERS[more.group(1)] if more else covered
                elif covered > 0:
                    covered -= 1
                elif not PAIRS.search(source.above_short_function(line)):
                    rest = " ".join(source.code[line:line + 4])
                    if not self.at_field(path, *accessed(rest, operation.end())):
                        faults.append(f"{path}:{line + 1}: {code.strip()}")
        return faults


def main():
    root = pathlib.Path(sys.argv[1])
    files = sys.argv[2:] or sorted(str(path.relative_to(root)) for folder in FOLDERS
                                   for path in (root / folder).rglob("*.[ch]"))
    tree = Tree(root)
    faults = [fault for file in files for fault in tree.faults(file)]
    if faults:
        print("\n".join(faults))
        print("these atomics do not say what they pair with, see scripts/check-pairings.py", file=sys.stderr)
        return 1
    print(f"{len(files)} files, each ordered atomic says what it pairs with")
    return 0


if __name__ == "__main__":
    sys.exit(main())
