// SPDX-License-Identifier: Apache-2.0
//
// fresh/tls and fresh/tls_layout: where libc has put a module's thread-locals, and their return to the image.
#include <string.h>

#include "layer.hpp"

namespace {

thread_local int programs_own = 5;

struct Place {
    const char *library;
    char *block; // by tls_layout
    void *data;  // by dl_iterate_phdr
    bool same_record;
};

int find_block(dl_phdr_info *info, size_t, void *argument) {
    static thread_local const link_map *cursor;
    auto *place = static_cast<Place *>(argument);
    const link_map *none = nullptr, *alone = tls_layout_next(&none, info);
    const link_map *following = tls_layout_next(&cursor, info);
    place->same_record &= alone == following && alone != nullptr && alone->l_addr == info->dlpi_addr;
    if (strstr(info->dlpi_name, place->library) != nullptr) {
        place->block = tls_layout_static_block(alone);
        place->data = info->dlpi_tls_data;
    }
    return 0;
}

Place place_of(const char *library) {
    Place place{library, nullptr, nullptr, true};
    dl_iterate_phdr(find_block, &place);
    return place;
}

TlsVariables *opened_variables() {
    static void *module = dlopen(TLS_MODULE_OPENED, RTLD_NOW);
    TlsVariables *(*get)();
    void *symbol = module != nullptr ? dlsym(module, "opened_variables") : nullptr;
    if (symbol == nullptr)
        abort();
    memcpy(&get, &symbol, sizeof symbol);
    return get();
}

class Tls : public testing::Test {
  protected:
    void SetUp() override {
        const LayerInit &init = layer_init();
        if (!init.with_libc && syscall(SYS_process_vm_readv, getpid(), nullptr, 0, nullptr, 0, 0) != 0 &&
            errno == ENOSYS)
            GTEST_SKIP() << "no process_vm_readv here (an emulator): the place is not looked for";
        ASSERT_TRUE(init.with_libc) << "this libc is not understood";
    }
};

TEST_F(Tls, LibcIsUnderstoodOnlyIfItsModulesAgree) {
    EXPECT_FALSE(layer_init().with_nothing);
    EXPECT_FALSE(layer_init().with_one_module) << "one is no proof";
    EXPECT_FALSE(layer_init().with_wrong_numbers);
    EXPECT_TRUE(layer_init().with_libc);
    EXPECT_TRUE(layer_init().once_more)
        << "as libthrum looks again where the system had no thread to learn with";
}

TEST_F(Tls, StaticBlockIsWhereTheVariablesAre) {
    auto look = [] {
        const Place place = place_of("libunit-base-linked");
        EXPECT_TRUE(place.same_record);
        EXPECT_EQ(place.block, reinterpret_cast<char *>(linked_variables()));
        EXPECT_EQ(place.block, place.data);
    };
    look();
    Plain(look).join();
}

TEST_F(Tls, NoStaticBlockForAModuleOpenedLater) {
    opened_variables()->zero = 1;
    const Place place = place_of("libunit-base-opened");
    EXPECT_TRUE(place.same_record);
    EXPECT_EQ(place.data, opened_variables());
    EXPECT_EQ(place.block, nullptr);
    EXPECT_EQ(tls_layout_static_block(nullptr), nullptr);
}

void spoil(TlsVariables *variables) {
    variables->seven = 70;
    variables->zero = 1;
    memset(variables->room, 'x', sizeof variables->room);
}

void expect_initial(const TlsVariables *variables) {
    EXPECT_EQ(variables->seven, 7);
    EXPECT_EQ(variables->zero, 0);
    EXPECT_EQ(std::string(variables->room, sizeof variables->room),
              std::string(sizeof variables->room, '\0'));
}

TEST_F(Tls, ReimageRestoresEveryModuleButLibcAndOurOwn) {
    Plain([] {
        spoil(linked_variables());
        spoil(opened_variables());
        programs_own = 6; // in the module that the core is linked into
        errno = 77;
        tls_reimage();
        const int error = errno;
        expect_initial(linked_variables());
        expect_initial(opened_variables());
        EXPECT_EQ(programs_own, 6);
        EXPECT_EQ(error, 77);
        free(malloc(100)); // its cache is still whole
    }).join();
}

TEST_F(Tls, ReimageLeavesOtherThreadsAlone) {
    spoil(linked_variables());
    Plain([] { tls_reimage(); }).join();
    EXPECT_EQ(linked_variables()->seven, 70);
    tls_reimage();
    expect_initial(linked_variables());
}

TEST_F(Tls, ThreadThatNeverTouchedAModuleHasNothingToRestore) {
    opened_variables();
    Plain([] {
        tls_reimage();
        EXPECT_EQ(place_of("libunit-base-opened").data, nullptr) << "and gets none by it";
        expect_initial(opened_variables());
    }).join();
}

TEST(TlsCallback, HeldUntilTheOutermostIsLeft) {
    EXPECT_FALSE(tls_lock_held_by_caller());
    const void *outer = tls_callback_entered(__builtin_frame_address(0));
    const void *inner = tls_callback_entered(__builtin_frame_address(0));
    tls_callback_left(inner);
    EXPECT_TRUE(tls_lock_held_by_caller());
    Plain([] { EXPECT_FALSE(tls_lock_held_by_caller()); }).join();
    tls_callback_left(outer);
    EXPECT_FALSE(tls_lock_held_by_caller());
}

__attribute__((noinline)) void enter_and_jump_out() {
    volatile char below[4096]; // the callback stood deeper in the stack than what comes after it
    below[0] = 0;
    tls_callback_entered(const_cast<const char *>(below));
}

TEST(TlsCallback, OneThatWasLeftByAJumpIsNotHeld) {
    enter_and_jump_out();
    EXPECT_FALSE(tls_lock_held_by_caller());
}

} // namespace
