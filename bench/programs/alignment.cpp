// SPDX-License-Identifier: Apache-2.0
//
// alignment [SEQUENCES [LENGTH [AT_ONCE]]]: the best local alignment (Smith and Waterman, affine gaps after
// Gotoh) of every pair of protein sequences, a thread a pair. AT_ONCE threads are started before the first is
// waited for; all, if that is not given: then no thread is joined before the last one has been made. The
// threads are the longest of the std::async programs.
#include <algorithm>
#include <string>

#include "async.hpp"

namespace {

constexpr unsigned kLetters = 20;
constexpr int kGapOpen = 10, kGapExtend = 1;

using Sequence = std::vector<unsigned char>;

int score(unsigned a, unsigned b) {
    if (a == b)
        return 5;
    return a % 5 == b % 5 ? 1 : -2; // alike or not
}

// Families of ten: each sequence is its family's ancestor with a third of the letters changed.
std::vector<Sequence> make_sequences(unsigned count, unsigned length) {
    std::vector<Sequence> sequences(count);
    for (unsigned i = 0; i < count; i++) {
        program::Random ancestor(1 + i / 10), own(1000 + i);
        sequences[i].resize(length / 2 + own.below(length + 1));
        for (unsigned char &letter : sequences[i]) {
            const unsigned inherited = ancestor.below(kLetters);
            letter = static_cast<unsigned char>(own.below(3) == 0 ? own.below(kLetters) : inherited);
        }
    }
    return sequences;
}

// The score of the best local alignment. `row` and `gap` hold one row each of the tables.
int align(const Sequence &a, const Sequence &b) {
    std::vector<int> row(b.size() + 1, 0), gap(b.size() + 1, 0);
    int best = 0;
    for (const unsigned char letter : a) {
        int diagonal = 0, left = 0, left_gap = 0;
        for (std::size_t j = 1; j <= b.size(); j++) {
            left_gap = std::max(left - kGapOpen, left_gap - kGapExtend);
            gap[j] = std::max(row[j] - kGapOpen, gap[j] - kGapExtend);
            left = std::max({0, diagonal + score(letter, b[j - 1]), left_gap, gap[j]});
            diagonal = row[j];
            row[j] = left;
            best = std::max(best, left);
        }
    }
    return best;
}

void take(std::vector<std::future<int>> &scores, program::Checksum &checksum) {
    for (std::future<int> &score : scores)
        checksum.add(score.get());
    scores.clear();
}

} // namespace

int main(int argc, char **argv) {
    argc = program::arguments_of(argc, argv);
    const auto count = static_cast<unsigned>(program::size_argument(argc, argv, 1, 100));
    const auto length = static_cast<unsigned>(program::size_argument(argc, argv, 2, 300));
    const std::size_t at_once = program::size_argument(argc, argv, 3, count * count);
    const std::vector<Sequence> sequences = make_sequences(count, length);
    std::vector<std::future<int>> scores;
    program::Checksum checksum;

    program::Stopwatch stopwatch;
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = i + 1; j < count; j++) {
            scores.push_back(
                program::start([&sequences, i, j] { return align(sequences[i], sequences[j]); }));
            if (scores.size() == at_once)
                take(scores, checksum);
        }
    take(scores, checksum);
    stopwatch.stop();
    stopwatch.report(checksum.value(), program::threads, program::deferred);
    return 0;
}
