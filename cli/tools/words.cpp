// SPDX-License-Identifier: Apache-2.0
#include "tools/words.hpp"

namespace thrum {

std::vector<char *> pointers(const std::vector<std::string> &words) {
    std::vector<char *> list;
    list.reserve(words.size() + 2);
    for (const std::string &word : words)
        list.push_back(const_cast<char *>(word.c_str()));
    list.push_back(nullptr);
    return list;
}

} // namespace thrum
