// SPDX-License-Identifier: Apache-2.0
/* Turns error numbers of the C functions into std::system_error: the code is the number; the text names the function that
 * was called, says what was wrong, and ends with the number's own message. */
#ifndef THRUM_HPP_DETAIL_ERROR_HPP
#define THRUM_HPP_DETAIL_ERROR_HPP

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

namespace thrum::detail {

/* What an error number means for one function. */
struct reason {
    int error;
    const char *text;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void fail(int error, const char *what) {
    throw std::system_error(error, std::generic_category(), what);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fail(int error, const char *what, const char *why) {
    throw std::system_error(error, std::generic_category(), std::string(what) + ": " + why);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fail(int error, const char *what, const reason *reasons,
                                                        std::size_t count) {
    for (const reason *one = reasons; one < reasons + count; one++)
        if (one->error == error)
            fail(error, what, one->text);
    fail(error, what);
}

template <std::size_t Count>
void check(int error, const char *what, const reason (&reasons)[Count]) {
    if (error != 0) [[unlikely]]
        fail(error, what, reasons, Count);
}

/* For functions with one possible error. */
inline void check(int error, const char *what, const char *why) {
    if (error != 0) [[unlikely]]
        fail(error, what, why);
}

inline constexpr const char runtime_has_ended[] =
    "its runtime has ended, and with it all of that runtime's threads";

/* thrum_spawn. */
inline constexpr reason spawn_reasons[] = {
    {EAGAIN, "no memory, memory mapping or kernel thread for another thread"},
    {EINVAL, "no such worker, or attributes that this runtime does not have or that exclude each other"},
    {ENOMEM, "no memory for the runtime that the first thread starts"},
};

/* thrum_join. */
inline constexpr reason join_reasons[] = {
    {EDEADLK, "the thread is the caller"},
    {EINVAL, "another thread joins it already, or it is detached"},
    {ESRCH, runtime_has_ended},
    {EPERM, "it has not ended, and a tasklet or a scheduler must not wait for it"},
};

} // namespace thrum::detail

#endif
