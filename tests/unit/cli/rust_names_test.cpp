// SPDX-License-Identifier: Apache-2.0
//
// Names of Rust's functions: those of rustc 1.95, and examples of RFC 2603.
#include <gtest/gtest.h>

#include "rust_names.hpp"
#include "symbols.hpp"

namespace {

using thrum::rust_name;
using thrum::without_rust_hash;

TEST(RustNames, OfThePresentMangling) {
    const struct {
        const char *mangled, *name;
    } names[] = {
        {"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
        {"_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended",
         "<std::sys::sync::mutex::futex::Mutex>::lock_contended"},
        {"_RNvMNtCs123_11parking_lot9raw_mutexNtB2_8RawMutex9lock_slow",
         "<parking_lot::raw_mutex::RawMutex>::lock_slow"},
        {"_RINvNtC3std3mem8align_ofjEC3foo", "std::mem::align_of::<usize>"},
        {"_RNCNvC4rmut4main0B3_", "rmut::main::{closure#0}"},
        {"_RNCNvC4rmut4mains_0B3_", "rmut::main::{closure#1}"},
        {"_RNvYhNtC4core5Clone5clone", "<u8 as core::Clone>::clone"},
        {"_RINvC1a1bAhj3_RShQmTlEE", "a::b::<[u8; 3], &[u8], &mut u32, (i32,)>"},
        {"_RINvC1a1bFUKCmEuE", "a::b::<unsafe extern \"C\" fn(u32)>"},
        {"_RINvC1a1bDNtC1c2FnEL_E", "a::b::<dyn c::Fn>"},
        {"_RNvC1a1b.llvm.1234", "a::b"},
    };
    for (const auto &one : names)
        EXPECT_EQ(rust_name(one.mangled), one.name) << one.mangled;
}

// As reports show them: the type of a method is kept, type arguments are not.
TEST(RustNames, AreShownWithoutTypes) {
    const struct {
        const char *name, *shown;
    } names[] = {
        {"<std::sys::sync::mutex::futex::Mutex>::lock_contended",
         "std::sys::sync::mutex::futex::Mutex::lock_contended"},
        {"<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop", "alloc::vec::Vec::drop"},
        {"<&str as core::any::Any>::type_id", "str::type_id"},
        {"<[u8]>::sort", "[u8]::sort"},
        {"<(i32,) as a::B>::c", "(i32,)::c"},
        {"<dyn a::B>::c", "a::B::c"},
        {"std::mem::align_of::<usize>", "std::mem::align_of"},
        {"<std::thread::Builder>::spawn::<rmut::main::{closure#0}, ()>::{closure#1}",
         "std::thread::Builder::spawn::{closure#1}"},
        {"<<a::B>::c::{closure#0} as d::E<()>>::f", "a::B::c::{closure#0}::f"},
        {"rmut::main", "rmut::main"},
        {"void a::b<int>(int)", "a::b"},
    };
    for (const auto &one : names) {
        thrum::Symbol symbol;
        symbol.function = one.name;
        EXPECT_EQ(thrum::short_name(symbol), one.shown) << one.name;
    }
}

TEST(RustNames, OthersAreNone) {
    for (const char *name : {"", "_R", "_RN", "_Rxyz", "_ZN3foo3barE", "main", "_RNvC99999999999999999999a",
                             "_RB_", "_RNvB_1a", "_RINvC1a1bE_", "_RNvC7mycrat", "_RNvCu8gdel_5qa1b"})
        EXPECT_EQ(rust_name(name), "") << name;
    EXPECT_EQ(rust_name("_RNvC1a1b" + std::string(100000, 'B')), "");
    EXPECT_EQ(rust_name("_RINvC1a1b" + std::string(100000, 'R') + "hE"), "");
    // Each reference doubles the size.
    std::string doubled = "_RINvC1a1bTThhE";
    for (int i = 0; i < 60; i++)
        doubled += "TB8_B8_E";
    EXPECT_LT(rust_name(doubled + "EE").size(), 10000U);
}

TEST(RustNames, OfTheOlderMangling) {
    EXPECT_EQ(without_rust_hash("std::sys::futex::Mutex::lock_contended::h0123456789abcdef"),
              "std::sys::futex::Mutex::lock_contended");
    EXPECT_EQ(
        without_rust_hash("_$LT$alloc..vec..Vec$LT$T$C$A$GT$$u20$as$u20$core..ops..drop..Drop$GT$::drop::"
                          "h0123456789abcdef"),
        "<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop");
    EXPECT_EQ(without_rust_hash("a::_$u7b$$u7b$closure$u7d$$u7d$::h0123456789abcdef"), "a::{{closure}}");
    for (const char *name : {"", "a::b(int)", "a::h0123", "a::h0123456789abcdeg", "..::$LT$"})
        EXPECT_EQ(without_rust_hash(name), name);
}

} // namespace
