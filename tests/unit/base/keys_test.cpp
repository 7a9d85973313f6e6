// SPDX-License-Identifier: Apache-2.0
//
// fresh/keys: destructors in rounds, and NULL for the next thread. Each test runs with both sources of what keys there
// are: libc's own table, where the front end is told of no key, and the front end's reports, where libc's table is not
// understood. With reports the keys are made in libc without a destructor, so that only what is under test runs one.
#include <limits.h>

#include <map>

#include "layer.hpp"

namespace {

struct Call {
    char key;
    void *value;
    bool operator==(const Call &other) const { return key == other.key && value == other.value; }
};

std::vector<Call> calls;
std::map<char, pthread_key_t> keys_of_test;

void *number(uintptr_t value) {
    return reinterpret_cast<void *>(value);
}

void note(char key, void *value) {
    EXPECT_EQ(pthread_getspecific(keys_of_test[key]), nullptr)
        << "the value is gone before its destructor runs";
    calls.push_back({key, value});
}

enum Source { kTable, kReports };

class KeysOf : public testing::Test {
  protected:
    explicit KeysOf(Source source) : source_(source) {}
    void SetUp() override {
        if (UNIT_TSAN && source_ == kTable)
            GTEST_SKIP() << "TSan has a key of its own in libc's table";
        calls.clear();
        if (source_ == kReports)
            faults.symbols["__pthread_keys"] = nullptr;
        keys_init();
    }
    void TearDown() override {
        while (!keys_of_test.empty())
            remove(keys_of_test.begin()->first);
        faults_clear();
        keys_init();
    }
    pthread_key_t make(char name, void (*destructor)(void *)) {
        pthread_key_t key;
        EXPECT_EQ(pthread_key_create(&key, source_ == kTable ? destructor : nullptr), 0);
        if (source_ == kReports)
            keys_created(key, destructor);
        keys_of_test[name] = key;
        return key;
    }
    void remove(char name) {
        if (source_ == kReports)
            keys_deleted(keys_of_test[name]);
        pthread_key_delete(keys_of_test[name]);
        keys_of_test.erase(name);
    }
    static void set(char name, uintptr_t value) { pthread_setspecific(keys_of_test[name], number(value)); }
    static void *get(char name) { return pthread_getspecific(keys_of_test[name]); }

  private:
    Source source_;
};

class Keys : public KeysOf, public testing::WithParamInterface<Source> {
  protected:
    Keys() : KeysOf(GetParam()) {}
};

class KeysInTable : public KeysOf {
  protected:
    KeysInTable() : KeysOf(kTable) {}
};

class KeysReported : public KeysOf {
  protected:
    KeysReported() : KeysOf(kReports) {}
};

TEST_P(Keys, DestructorsGetTheirValuesInTheOrderOfKeys) {
    pthread_key_t a = make('a', [](void *value) { note('a', value); });
    pthread_key_t b = make('b', [](void *value) { note('b', value); });
    ASSERT_LT(a, b);
    set('b', 2);
    set('a', 1);
    keys_run_destructors(KEYS_NONE_SPARED);
    EXPECT_EQ(calls, (std::vector<Call>{{'a', number(1)}, {'b', number(2)}}));
    EXPECT_EQ(get('a'), nullptr);
    EXPECT_EQ(get('b'), nullptr);
    keys_run_destructors(KEYS_NONE_SPARED);
    EXPECT_EQ(calls.size(), 2u) << "nothing is left to destroy";
}

TEST_P(Keys, NoCallWithoutValueOrDestructor) {
    make('a', [](void *value) { note('a', value); });
    make('n', nullptr);
    set('n', 5);
    keys_run_destructors(KEYS_NONE_SPARED);
    EXPECT_TRUE(calls.empty());
    EXPECT_EQ(get('n'), nullptr) << "a pass takes every value";
    set('n', 5);
    keys_clear(KEYS_NONE_SPARED);
    EXPECT_EQ(get('n'), nullptr);
}

TEST_P(Keys, ASparedKeyKeepsItsValue) {
    const pthread_key_t kept = make('a', [](void *value) { note('a', value); });
    make('b', [](void *value) { note('b', value); });
    set('a', 1);
    EXPECT_FALSE(keys_run_destructors(kept)) << "there was none to run";
    set('b', 2);
    EXPECT_TRUE(keys_run_destructors(kept));
    set('b', 3);
    keys_clear(kept);
    EXPECT_EQ(calls, (std::vector<Call>{{'b', number(2)}}));
    EXPECT_EQ(get('a'), number(1));
    EXPECT_EQ(get('b'), nullptr);
    keys_clear(KEYS_NONE_SPARED);
}

// As libc: a pass takes the values key by key, those without a destructor too.
TEST_P(Keys, DestructorSeesTheValuesOfLaterKeysOnly) {
    static void *before, *after;
    before = after = number(1);
    make('m', nullptr);
    make('a', [](void *) {
        before = get('m');
        after = get('n');
    });
    make('n', nullptr);
    ASSERT_LT(keys_of_test['m'], keys_of_test['a']);
    ASSERT_LT(keys_of_test['a'], keys_of_test['n']);
    for (char name : {'m', 'a', 'n'})
        set(name, 7);
    keys_run_destructors(KEYS_NONE_SPARED);
    EXPECT_EQ(before, nullptr);
    EXPECT_EQ(after, number(7));
    EXPECT_EQ(get('n'), nullptr);
}

// As libc: a value set again is destroyed again, PTHREAD_DESTRUCTOR_ITERATIONS times; what is left then is lost.
TEST_P(Keys, RoundsEnd) {
    make('a', [](void *value) {
        note('a', value);
        set('a', reinterpret_cast<uintptr_t>(value) + 1);
    });
    set('a', 1);
    keys_run_destructors(KEYS_NONE_SPARED);
    std::vector<Call> expected;
    for (uintptr_t i = 1; i <= PTHREAD_DESTRUCTOR_ITERATIONS; i++)
        expected.push_back({'a', number(i)});
    EXPECT_EQ(calls, expected);
    EXPECT_EQ(get('a'), number(PTHREAD_DESTRUCTOR_ITERATIONS + 1));
    keys_clear(KEYS_NONE_SPARED);
    EXPECT_EQ(get('a'), nullptr);
}

TEST_P(Keys, ValueSetForAnEarlierKeyIsDestroyedInTheNextRound) {
    make('a', [](void *value) { note('a', value); });
    make('b', [](void *value) {
        note('b', value);
        set('a', 10);
        set('c', 30);
    });
    make('c', [](void *value) { note('c', value); });
    set('b', 2);
    keys_run_destructors(KEYS_NONE_SPARED);
    EXPECT_EQ(calls, (std::vector<Call>{{'b', number(2)}, {'c', number(30)}, {'a', number(10)}}));
}

TEST_P(Keys, DeletedKeysAreNotDestroyed) {
    make('a', [](void *value) { note('a', value); });
    make('b', [](void *value) { note('b', value); });
    set('a', 1);
    set('b', 2);
    remove('a');
    keys_run_destructors(KEYS_NONE_SPARED);
    EXPECT_EQ(calls, (std::vector<Call>{{'b', number(2)}}));
}

TEST_P(Keys, LastDestructorGivenCounts) {
    pthread_key_t a = make('a', [](void *) { FAIL() << "of the key that was deleted"; });
    remove('a');
    ASSERT_EQ(make('a', [](void *value) { note('a', value); }), a) << "libc uses its number again";
    keys_run_destructors(KEYS_NONE_SPARED);
    EXPECT_TRUE(calls.empty());
    set('a', 3);
    keys_run_destructors(KEYS_NONE_SPARED);
    EXPECT_EQ(calls.size(), 1u);
}

TEST_F(KeysReported, DeletedKeysAreLeftAlone) {
    pthread_key_t a = make('a', [](void *value) { note('a', value); });
    set('a', 1);
    keys_deleted(a);
    keys_run_destructors(KEYS_NONE_SPARED);
    keys_clear(KEYS_NONE_SPARED);
    EXPECT_TRUE(calls.empty());
    EXPECT_EQ(get('a'), number(1));
    keys_created(a, [](void *value) { note('a', value); });
    keys_run_destructors(KEYS_NONE_SPARED);
    EXPECT_EQ(calls.size(), 1u) << "and known again when its number is used again";
}

TEST_P(Keys, ValuesAreTheThreadsOwn) {
    make('a', [](void *value) { note('a', value); });
    set('a', 1);
    Plain([] {
        keys_run_destructors(KEYS_NONE_SPARED);
        keys_clear(KEYS_NONE_SPARED);
    }).join();
    EXPECT_TRUE(calls.empty());
    EXPECT_EQ(get('a'), number(1));
}

TEST_P(Keys, NumbersThatCannotBeAreIgnored) {
    keys_created(PTHREAD_KEYS_MAX, [](void *) { abort(); });
    keys_created(UINT32_MAX, [](void *) { abort(); });
    keys_deleted(PTHREAD_KEYS_MAX);
    keys_deleted(UINT32_MAX);
    keys_run_destructors(KEYS_NONE_SPARED);
    keys_clear(KEYS_NONE_SPARED);
}

// Above every key that is told of, and below one that was deleted.
TEST_F(KeysInTable, KeysThatNothingReportedAreDestroyed) {
    make('a', nullptr);
    make('b', [](void *value) { note('b', value); });
    make('c', [](void *value) { note('c', value); });
    remove('a');
    keys_run_destructors(KEYS_NONE_SPARED);
    set('b', 2);
    set('c', 3);
    keys_run_destructors(KEYS_NONE_SPARED);
    EXPECT_EQ(calls, (std::vector<Call>{{'b', number(2)}, {'c', number(3)}}));
}

// The table counts only where everything that libc tells debuggers of it is as expected.
TEST_F(KeysInTable, IsNotReadWhereLibcTellsSomethingElse) {
    struct Field {
        uint32_t bits, count, offset;
    };
    constexpr uint32_t bits = 8 * sizeof(void *);
    uint32_t larger = 3 * sizeof(void *);
    Field narrow{bits / 2, 1, 0}, two{bits, 2, 0}, elsewhere{bits, 1, 2 * sizeof(void *)};
    make('a', [](void *value) { note('a', value); });
    set('a', 1);
    auto is_read_with = [](const char *name, void *symbol) {
        faults.symbols[name] = symbol;
        keys_init();
        keys_run_destructors(KEYS_NONE_SPARED);
        faults.symbols.clear();
        return !calls.empty();
    };
    EXPECT_FALSE(is_read_with("__pthread_keys", nullptr));
    EXPECT_FALSE(is_read_with("_thread_db_sizeof_pthread_key_struct", nullptr));
    EXPECT_FALSE(is_read_with("_thread_db_sizeof_pthread_key_struct", &larger));
    for (const char *field : {"_thread_db_pthread_key_struct_seq", "_thread_db_pthread_key_struct_destr"})
        for (Field *told : std::initializer_list<Field *>{nullptr, &narrow, &two, &elsewhere})
            EXPECT_FALSE(is_read_with(field, told)) << field;
    EXPECT_EQ(get('a'), number(1));
    EXPECT_TRUE(is_read_with("of no library", nullptr));
}

INSTANTIATE_TEST_SUITE_P(Source, Keys, testing::Values(kTable, kReports),
                         [](const auto &source) { return source.param == kTable ? "Table" : "Reports"; });

} // namespace
