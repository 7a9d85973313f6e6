// SPDX-License-Identifier: Apache-2.0
//
// base/rows: the parsing of THRUM_SKIP, which only debug builds have; other builds leave this file out.
#include "layer.hpp"

namespace {

class Rows : public testing::Test {
  protected:
    void SetUp() override {
        before_ = rows_skipped_mask;
        rows_skipped_mask = 0;
    }
    void TearDown() override { rows_skipped_mask = before_; }
    static uint64_t bit(thrum_row row) { return UINT64_C(1) << row; }

  private:
    uint64_t before_ = 0;
};

TEST_F(Rows, EveryRowByItsName) {
#define CHECK_ROW(name, text)                                                                                \
    rows_skipped_mask = 0;                                                                                   \
    EXPECT_TRUE(rows_skip(text));                                                                            \
    EXPECT_EQ(rows_skipped_mask, bit(ROW_##name)) << text;                                                   \
    EXPECT_TRUE(skipped(ROW_##name));
    THRUM_ROWS(CHECK_ROW)
    EXPECT_LE(static_cast<unsigned>(ROWS_END), 64u) << "the mask holds every row";
}

TEST_F(Rows, NothingIsSkippedByAnEmptyList) {
    EXPECT_TRUE(rows_skip(""));
    EXPECT_TRUE(rows_skip(",,"));
    EXPECT_EQ(rows_skipped_mask, 0u);
}

TEST_F(Rows, ListsAddUp) {
    EXPECT_TRUE(rows_skip("keys,,join,"));
    EXPECT_TRUE(rows_skip(",fork"));
    EXPECT_EQ(rows_skipped_mask, bit(ROW_KEYS) | bit(ROW_JOIN) | bit(ROW_FORK));
    EXPECT_FALSE(skipped(ROW_REST));
}

TEST_F(Rows, UnknownNamesAreReportedAndTheOthersCount) {
    EXPECT_FALSE(rows_skip("keys,nothing,join"));
    EXPECT_EQ(rows_skipped_mask, bit(ROW_KEYS) | bit(ROW_JOIN));
}

TEST_F(Rows, NamesMatchAsAWhole) {
    for (const char *almost : {"key", "keyss", "KEYS", " keys", "exi", "tls-", "static"})
        EXPECT_FALSE(rows_skip(almost)) << almost;
    EXPECT_EQ(rows_skipped_mask, 0u);
}

} // namespace
