// SPDX-License-Identifier: Apache-2.0
//
// fft [POINTS [CUT-OFF]]: the discrete Fourier transform of complex numbers (Cooley and Tukey, mixed radix,
// decimation in time). The parts of each transform are threads; so are the halves of the loop that combines
// them. Below CUT-OFF points there are no more threads.
#include <cmath>
#include <complex>

#include "async.hpp"

namespace {

using Complex = std::complex<double>;

std::size_t total, cut_off;
std::vector<Complex> roots; // roots[k] = e^(-2 pi i k / total)

std::size_t smallest_factor(std::size_t n) {
    for (std::size_t factor = 2; factor * factor <= n; factor++)
        if (n % factor == 0)
            return factor;
    return n;
}

Complex times(const Complex &a, const Complex &b) { // without the checks for infinity
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Of `radix` transforms of n / radix points in `parts` makes the points k = first, first + 1, ... < last, and
// those at distance n / radix from them, of the one of n points.
void combine(const Complex *parts, Complex *to, std::size_t n, std::size_t radix, std::size_t first,
             std::size_t last) {
    const std::size_t m = n / radix;
    if ((last - first) * radix > cut_off) {
        const std::size_t middle = first + (last - first) / 2;
        auto lower = program::start([=] { combine(parts, to, n, radix, first, middle); });
        combine(parts, to, n, radix, middle, last);
        return lower.get();
    }
    for (std::size_t k = first; k < last; k++)
        for (std::size_t q = 0; q < radix; q++) {
            Complex sum = parts[k];
            for (std::size_t r = 1; r < radix; r++)
                sum += times(parts[r * m + k], roots[r * (k + q * m) % n * (total / n)]);
            to[q * m + k] = sum;
        }
}

// The transform of from[0], from[stride], ... (n numbers) into `to`; `work` is as large.
void transform(const Complex *from, std::size_t stride, Complex *to, Complex *work, std::size_t n) {
    if (n == 1) {
        to[0] = from[0];
        return;
    }
    const std::size_t radix = smallest_factor(n), m = n / radix;
    std::vector<std::future<void>> parts;
    for (std::size_t r = 0; r < radix; r++) {
        const auto part = [=] { transform(from + r * stride, stride * radix, work + r * m, to + r * m, m); };
        if (n > cut_off && r < radix - 1)
            parts.push_back(program::start(part));
        else
            part();
    }
    program::wait_for(parts);
    combine(work, to, n, radix, 0, m);
}

// A few points by the definition.
void check(const std::vector<Complex> &from, const std::vector<Complex> &to) {
    for (const std::size_t k : {std::size_t{0}, std::size_t{1}, total / 3, total - 1}) {
        Complex sum = 0;
        for (std::size_t i = 0; i < total; i++)
            sum += times(from[i], roots[i * k % total]);
        program::require(std::abs(sum - to[k]) < 1e-6 * std::sqrt(static_cast<double>(total)),
                         "not the Fourier transform");
    }
}

} // namespace

int main(int argc, char **argv) {
    argc = program::arguments_of(argc, argv);
    total = program::size_argument(argc, argv, 1, 100000);
    cut_off = program::size_argument(argc, argv, 2, 64);
    program::Random random(1);
    std::vector<Complex> from(total), to(total), work(total);
    roots.resize(total);
    for (std::size_t i = 0; i < total; i++) {
        from[i] = {random.unit() - 0.5, random.unit() - 0.5};
        roots[i] = std::polar(1.0, -2 * M_PI * static_cast<double>(i) / static_cast<double>(total));
    }

    program::Stopwatch stopwatch;
    transform(from.data(), 1, to.data(), work.data(), total);
    stopwatch.stop();
    program::Checksum checksum;
    checksum.add(to.data(), total * sizeof(Complex));
    stopwatch.report(checksum.value(), program::threads, program::deferred);
    check(from, to);
    return 0;
}
