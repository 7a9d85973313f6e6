// SPDX-License-Identifier: Apache-2.0
#include "preload.hpp"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "arguments.hpp"
#include "failure.hpp"

#ifndef THRUM_INSTALL_LIBDIR_RELATIVE
#error                                                                                                       \
    "THRUM_INSTALL_LIBDIR_RELATIVE is defined by the build: from the folder of thrum to that of the library"
#endif

namespace thrum {

namespace {

constexpr const char *kSeparators = " :"; // of LD_PRELOAD; the loader knows no way to escape them

std::string own_folder() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0 || length == static_cast<ssize_t>(sizeof path))
        throw Failure(kRefused, std::string("cannot find out where thrum itself is: ") +
                                    (length < 0 ? std::strerror(errno) : "its path is too long"));
    const std::string whole(path, static_cast<std::size_t>(length));
    return whole.substr(0, whole.rfind('/'));
}

// Where it was installed to, or in the build tree. Both are relative to thrum, so a prefix may be moved.
std::string locate_library(const std::string &name) {
    const std::string folder = own_folder();
    std::string tried;
    for (const char *place : {THRUM_INSTALL_LIBDIR_RELATIVE, "../lib"}) {
        const std::string candidate = folder + "/" + place + "/" + name;
        const std::unique_ptr<char, decltype(&std::free)> real(realpath(candidate.c_str(), nullptr),
                                                               std::free);
        if (real != nullptr && access(real.get(), R_OK) == 0)
            return real.get();
        if (tried != candidate)
            tried += (tried.empty() ? "" : " or ") + candidate;
    }
    throw Failure(kRefused, "cannot find " + name + ": there is no readable " + tried);
}

void check_expressible(const std::string &library) {
    if (library.find_first_of(kSeparators) == std::string::npos && library.find('$') == std::string::npos)
        return;
    throw Failure(kRefused, "LD_PRELOAD cannot name '" + library +
                                "', because there is a space, a colon or a '$' in it; move thrum's "
                                "folder to a path without");
}

// The library first, then what was preloaded before (thrum may be run inside thrum: only one of it).
std::string preload_list(const std::string &library, bool with_library) {
    std::string list = with_library ? library : "";
    const char *present = std::getenv("LD_PRELOAD");
    for (const std::string &part : split(present != nullptr ? present : "", kSeparators))
        if (part != library)
            list += (list.empty() ? "" : ":") + part;
    return list;
}

} // namespace

std::string find_library(const std::string &name) {
    const std::string library = locate_library(name);
    check_expressible(library);
    return library;
}

void set_preload(const std::string &library, bool with_library) {
    const std::string list = preload_list(library, with_library);
    if (list.empty())
        unsetenv("LD_PRELOAD");
    else
        setenv("LD_PRELOAD", list.c_str(), 1);
}

} // namespace thrum
