// SPDX-License-Identifier: Apache-2.0
//
// fresh/keys: destructors in rounds, and NULL for the next thread. The keys are made in libc without a destructor,
// so that only what is under test runs one.
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

class Keys : public testing::Test {
  protected:
    void SetUp() override { calls.clear(); }
    void TearDown() override {
        for (auto &[name, key] : keys_of_test) {
            keys_deleted(key);
            pthread_key_delete(key);
        }
        keys_of_test.clear();
    }
    static pthread_key_t make(char name, void (*destructor)(void *)) {
        pthread_key_t key;
        EXPECT_EQ(pthread_key_create(&key, nullptr), 0);
        keys_created(key, destructor);
        keys_of_test[name] = key;
        return key;
    }
    static void set(char name, uintptr_t value) { pthread_setspecific(keys_of_test[name], number(value)); }
    static void *get(char name) { return pthread_getspecific(keys_of_test[name]); }
};

TEST_F(Keys, DestructorsGetTheirValuesInTheOrderOfKeys) {
    pthread_key_t a = make('a', [](void *value) { note('a', value); });
    pthread_key_t b = make('b', [](void *value) { note('b', value); });
    ASSERT_LT(a, b);
    set('b', 2);
    set('a', 1);
    keys_run_destructors();
    EXPECT_EQ(calls, (std::vector<Call>{{'a', number(1)}, {'b', number(2)}}));
    EXPECT_EQ(get('a'), nullptr);
    EXPECT_EQ(get('b'), nullptr);
    keys_run_destructors();
    EXPECT_EQ(calls.size(), 2u) << "nothing is left to destroy";
}

TEST_F(Keys, NoCallWithoutValueOrDestructor) {
    make('a', [](void *value) { note('a', value); });
    make('n', nullptr);
    set('n', 5);
    keys_run_destructors();
    EXPECT_TRUE(calls.empty());
    EXPECT_EQ(get('n'), number(5));
    keys_clear();
    EXPECT_EQ(get('n'), nullptr);
}

// As libc: a value set again is destroyed again, PTHREAD_DESTRUCTOR_ITERATIONS times; what is left then is lost.
TEST_F(Keys, RoundsEnd) {
    make('a', [](void *value) {
        note('a', value);
        set('a', reinterpret_cast<uintptr_t>(value) + 1);
    });
    set('a', 1);
    keys_run_destructors();
    std::vector<Call> expected;
    for (uintptr_t i = 1; i <= PTHREAD_DESTRUCTOR_ITERATIONS; i++)
        expected.push_back({'a', number(i)});
    EXPECT_EQ(calls, expected);
    EXPECT_EQ(get('a'), number(PTHREAD_DESTRUCTOR_ITERATIONS + 1));
    keys_clear();
    EXPECT_EQ(get('a'), nullptr);
}

TEST_F(Keys, ValueSetForAnEarlierKeyIsDestroyedInTheNextRound) {
    make('a', [](void *value) { note('a', value); });
    make('b', [](void *value) {
        note('b', value);
        set('a', 10);
        set('c', 30);
    });
    make('c', [](void *value) { note('c', value); });
    set('b', 2);
    keys_run_destructors();
    EXPECT_EQ(calls, (std::vector<Call>{{'b', number(2)}, {'c', number(30)}, {'a', number(10)}}));
}

TEST_F(Keys, DeletedKeysAreLeftAlone) {
    pthread_key_t a = make('a', [](void *value) { note('a', value); });
    set('a', 1);
    keys_deleted(a);
    keys_run_destructors();
    keys_clear();
    EXPECT_TRUE(calls.empty());
    EXPECT_EQ(get('a'), number(1));
    keys_created(a, [](void *value) { note('a', value); });
    keys_run_destructors();
    EXPECT_EQ(calls.size(), 1u) << "and known again when its number is used again";
}

TEST_F(Keys, LastDestructorGivenCounts) {
    pthread_key_t a = make('a', [](void *) { FAIL() << "of the key that was deleted"; });
    keys_deleted(a);
    keys_created(a, [](void *value) { note('a', value); });
    set('a', 3);
    keys_run_destructors();
    EXPECT_EQ(calls.size(), 1u);
}

TEST_F(Keys, ValuesAreTheThreadsOwn) {
    make('a', [](void *value) { note('a', value); });
    set('a', 1);
    Plain([] {
        keys_run_destructors();
        keys_clear();
    }).join();
    EXPECT_TRUE(calls.empty());
    EXPECT_EQ(get('a'), number(1));
}

TEST_F(Keys, NumbersThatCannotBeAreIgnored) {
    keys_created(PTHREAD_KEYS_MAX, [](void *) { abort(); });
    keys_created(UINT32_MAX, [](void *) { abort(); });
    keys_deleted(PTHREAD_KEYS_MAX);
    keys_deleted(UINT32_MAX);
    keys_run_destructors();
    keys_clear();
}

} // namespace
