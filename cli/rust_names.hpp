// SPDX-License-Identifier: Apache-2.0
//
// Names of Rust's functions as its programmers write them: of the mangling v0 (RFC 2603, "_R..."), and of what
// abi::__cxa_demangle makes of the older one, which leaves a hash and escapes. Used by symbols_elfutils.cpp.
#pragma once

#include <string>

namespace thrum {

// "_RNvNtCs1234_4core3foo3bar" is "core::foo::bar". Empty: it is no name of that mangling, or not in full.
std::string rust_name(const std::string &mangled);

// "a::b::h0123456789abcdef", which has such a hash at its end, without that and its escapes ("$LT$" is "<"). Others stay as
// they are.
std::string without_rust_hash(const std::string &demangled);

} // namespace thrum
