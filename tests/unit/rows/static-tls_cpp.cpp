// SPDX-License-Identifier: Apache-2.0
//
// Row "static-tls", C++: the guard of a thread_local object lies in .tbss, so each logical thread constructs its own.

#include <string>
#include <vector>

#include "check.h"

namespace {

int constructed; // by one thread at a time

struct Counted {
    std::string text;
    Counted() : text("a string that is too long for the small buffer") { constructed++; }
};

thread_local Counted of_the_file;

std::vector<int> &of_a_function() {
    thread_local std::vector<int> numbers{1, 2, 3};
    return numbers;
}

void *use(void *) {
    CHECK(of_the_file.text == "a string that is too long for the small buffer",
          "the object is not new: \"%s\"", of_the_file.text.c_str());
    of_the_file.text = "spoilt by the previous thread, and long enough for the heap";
    CHECK_EQ(of_a_function().size(), 3);
    of_a_function().push_back(4);
    return nullptr;
}

void each_thread_constructs() {
    pid_t last = 0;
    for (int i = 1; i <= 3; i++) {
        pid_t tid = run_thread(use, nullptr);
        CHECK_EQ(constructed, i);
        if (last)
            expect_reused(last, tid);
        last = tid;
    }
}

const check_case cases[] = {{"each-thread-constructs", each_thread_constructs, FAILS_WHEN_SKIPPED}};

} // namespace

CHECK_MAIN(cases)
