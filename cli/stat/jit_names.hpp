// SPDX-License-Identifier: Apache-2.0
//
// Names of functions that a program compiles while it runs: as it writes them to /tmp/perf-PID.map, a convention of perf(1)'s
// that virtual machines follow where they are told to (node --perf-basic-prof, java with a perf map agent, python -X perf).
// Used by unwind.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace thrum::stat {

// What such a file calls a function, as its programmer does: "JS:*draw /srv/www/page.js:12:5" of V8 is draw (page.js:12),
// "py::draw:/srv/page.py" of Python is draw (page.py), and "void Page.draw(int)" of Java is Page.draw.
struct JitName {
    std::string function;
    std::string file; // its last component; empty where it is not known
    int line = 0;
    bool is_runtimes = false; // of the runtime's own code, as node:internal/...
    std::uint64_t offset = 0; // of the address that was asked for, in the function
};

// Without the offset. Other names stay as they are.
JitName jit_name(const std::string &name);

class JitNames {
  public:
    // Of a process, which may have ended, and by its number in this namespace. Reads only files that are the user's
    // own or root's: any user may write to /tmp.
    explicit JitNames(pid_t pid);
    // By the text of such a file: lines of "START SIZE NAME", the first two hexadecimal. What comes later lies over what came
    // before.
    explicit JitNames(const std::string &text) { add(text); }

    std::optional<JitName> at(std::uint64_t address) const;

  private:
    struct Code {
        std::uint64_t end;
        std::string name;
    };
    void add(const std::string &text);

    std::map<std::uint64_t, Code> functions_; // by where they begin; none lies over another
};

} // namespace thrum::stat
