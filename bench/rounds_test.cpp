// SPDX-License-Identifier: Apache-2.0
//
// The order in which variants take turns, what is made of their samples, and when a verdict is given.
#include "rounds.hpp"

#include <gtest/gtest.h>

#include "verdict.hpp"

namespace {

using bench::Numbers;
using bench::Rounds;
using bench::Turns;
using Order = std::vector<std::size_t>;

Order order_of(const Turns &turns, std::size_t lacking = SIZE_MAX) {
    Order order;
    bench::take_turns(turns, [&](std::size_t variant, std::size_t) {
        order.push_back(variant);
        return variant != lacking;
    });
    return order;
}

TEST(Rounds, EachBeginsWithAnotherVariant) {
    EXPECT_EQ(order_of({4, {"a", "b", "c"}}), (Order{0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2}));
}

TEST(Rounds, VariantsOfARowStayTogether) {
    EXPECT_EQ(order_of({2, {"a", "b", "c", "d"}, 2}), (Order{0, 1, 2, 3, 1, 0, 3, 2}));
}

TEST(Rounds, WhatIsNotAvailableIsTriedOnce) {
    EXPECT_EQ(order_of({3, {"a", "b"}}, 1), (Order{0, 1, 0, 0}));
}

// The variant times a thousand, plus the round.
Rounds<double> numbered(double rounds, std::size_t lacking = SIZE_MAX) {
    return Rounds<double>({rounds, {"a", "b"}}, [&](std::size_t variant, std::size_t round) {
        const double number = 1000 * static_cast<double>(variant + 1) + static_cast<double>(round);
        return variant == lacking ? std::nullopt : std::optional(number);
    });
}

double itself(double number) {
    return number;
}

TEST(Rounds, SamplesAreInTheOrderOfTheRounds) {
    const Rounds<double> rounds = numbered(3);
    EXPECT_EQ(rounds.samples(0), (Numbers{1000, 1001, 1002}));
    EXPECT_EQ(rounds.samples(1), (Numbers{2000, 2001, 2002}));
    EXPECT_EQ(rounds.of(1, itself).median, 2001);
}

TEST(Rounds, ComparesWithinARound) {
    const Rounds<double> rounds = numbered(3);
    EXPECT_EQ(rounds.compared(1, 0, [](double one, double other) { return one - other; }),
              (Numbers{1000, 1000, 1000}));
    EXPECT_EQ(rounds.ratios(1, 0, itself), (Numbers{2000 / 1000.0, 2001 / 1001.0, 2002 / 1002.0}));
}

TEST(Rounds, WhatIsNotAvailableHasADash) {
    const Rounds<double> rounds = numbered(3, 1);
    EXPECT_TRUE(rounds.has(0));
    EXPECT_FALSE(rounds.has(1));
    EXPECT_EQ(std::get<std::string>(rounds.cell(1, itself)), "-");
    EXPECT_EQ(std::get<bench::Estimate>(rounds.cell(0, itself)).median, 1001);
}

TEST(Rounds, ReadsAsManyNumbersAsAreDue) {
    EXPECT_EQ(bench::numbers_in("1 2.5 3\n", 3), (Numbers{1, 2.5, 3}));
    EXPECT_EQ(bench::nth(1, 2)(Numbers{1, 2.5, 3}), 5);
    EXPECT_THROW(bench::numbers_in("1 2.5", 3), bench::Failure);
    EXPECT_THROW(bench::numbers_in("1 x", 2), bench::Failure);
}

TEST(Verdicts, AreByTheWholeInterval) {
    bench::Verdicts verdicts;
    const bench::Estimate six = bench::estimate({1, 2, 3, 4, 5, 6});
    EXPECT_STREQ(verdicts.at_most(six, 6), "kept");
    EXPECT_STREQ(verdicts.at_most(six, 5), "undecided");
    EXPECT_STREQ(verdicts.at_most(six, 0.5), "MISSED");
    EXPECT_STREQ(verdicts.at_least(six, 1), "kept");
    EXPECT_STREQ(verdicts.at_least(six, 7), "MISSED");
}

TEST(Verdicts, AreUndecidedWhereNoIntervalHolds) {
    bench::Verdicts verdicts;
    EXPECT_STREQ(verdicts.at_most(bench::estimate({1, 2, 3, 4, 5}), 100), "undecided");
    EXPECT_STREQ(verdicts.at_most(bench::estimate({1, 2, 3, 4, 5, 6}, 2), 100),
                 "undecided"); // one of two cases
    EXPECT_STREQ(verdicts.at_most(bench::estimate({1, 2, 3, 4, 5, 6, 7}, 2), 100), "kept");
    EXPECT_FALSE(verdicts.has_missed());
}

} // namespace
