// SPDX-License-Identifier: Apache-2.0
#include "preload.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "arguments.hpp"
#include "tools/failure.hpp"

#ifndef THRUM_INSTALL_LIBDIR_RELATIVE
#error                                                                                                       \
    "THRUM_INSTALL_LIBDIR_RELATIVE is defined by the build: from the folder of thrum to that of the library"
#endif

namespace thrum {

namespace {

constexpr const char *kTree = "/thrum/";
constexpr const char *kPlatform = "$PLATFORM";
constexpr const char *kSeparators = " :"; // of LD_PRELOAD; the loader knows no way to escape them

std::string own_folder() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0 || length == static_cast<ssize_t>(sizeof path))
        throw Failure(kRefused, std::string("cannot find thrum's own path by /proc/self/exe: ") +
                                    (length > 0        ? "it is too long"
                                     : errno == ENOENT ? "/proc is not mounted here"
                                                       : std::strerror(errno)));
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

// The same library by the name of which the loader of the program's libc fills in the platform (cmake/ThrumPreload.cmake).
// A child that is built against musl or for 32 bits finds nothing to complain about there.
std::string by_platform(const std::string &library, const std::string &name) {
    const auto *platform = reinterpret_cast<const char *>(getauxval(AT_PLATFORM));
    if (platform == nullptr)
        return library;
    const std::string tree = library.substr(0, library.rfind('/')) + kTree, file = "/" + name;
    const std::unique_ptr<char, decltype(&std::free)> real(
        realpath((tree + platform + file).c_str(), nullptr), std::free);
    return real != nullptr && library == real.get() ? tree + kPlatform + file : library;
}

void check_expressible(const std::string &library) {
    if (library.find_first_of(kSeparators) == std::string::npos && library.find('$') == std::string::npos)
        return;
    throw Failure(kRefused, "LD_PRELOAD cannot name '" + library +
                                "', because there is a space, a colon or a '$' in it; move thrum's "
                                "folder to a path without");
}

// The library first, then what was preloaded before. Thrum may be run inside thrum: only one of it.
std::string preload_list(const std::string &library, bool with_library) {
    std::string list = with_library ? library : "";
    const char *present = std::getenv("LD_PRELOAD");
    for (const std::string &part : split(present != nullptr ? present : "", kSeparators))
        if (own_path(part) != own_path(library))
            list += (list.empty() ? "" : ":") + part;
    return list;
}

} // namespace

// What by_platform made of the library's own path, undone.
std::string own_path(std::string library) {
    const std::string inserted = std::string(kTree) + kPlatform;
    if (const std::size_t at = library.rfind(inserted); at != std::string::npos)
        library.erase(at, inserted.size());
    return library;
}

std::string find_library(const std::string &name) {
    const std::string library = locate_library(name);
    check_expressible(library);
    return by_platform(library, name);
}

void set_preload(const std::string &library, bool with_library) {
    const std::string list = preload_list(library, with_library);
    if (list.empty())
        unsetenv("LD_PRELOAD");
    else
        setenv("LD_PRELOAD", list.c_str(), 1);
}

} // namespace thrum
