// SPDX-License-Identifier: Apache-2.0
//
// For stat_sampler_test.cpp: a function whose source is where rustc says that the sources of Rust's library are.
unsigned wrapping_mul(unsigned a, unsigned b);

#line 1 "/rustc/0123456789/library/core/src/num/uint_macros.rs"
unsigned wrapping_mul(unsigned a, unsigned b) {
    return a * b;
}
