// SPDX-License-Identifier: Apache-2.0
#include "stat/lock_table.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>
#include <sstream>

#include "process.hpp"
#include "stat/rules.hpp"
#include "tools/failure.hpp"

namespace thrum::stat {

namespace {

const std::map<std::string, ListedLock::Kind> kKinds = {
    {"[lock]", ListedLock::kLock},           {"[read-lock]", ListedLock::kReadLock},
    {"[allocator]", ListedLock::kAllocator}, {"[interpreter]", ListedLock::kInterpreter},
    {"[count]", ListedLock::kCount},         {"[idle]", ListedLock::kIdle},
    {"[runtime]", ListedLock::kRuntime},
};

std::string trimmed(const std::string &text) {
    const std::size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
    return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

void add_words(std::vector<std::string> &list, const std::string &text) {
    std::istringstream words(text);
    for (std::string word; words >> word;)
        list.push_back(word);
}

bool set(ListedLock &entry, const std::string &key, const std::string &value) {
    const std::map<std::string, std::vector<std::string> ListedLock::*> lists = {
        {"at", &ListedLock::at},
        {"through", &ListedLock::through},
        {"not", &ListedLock::without},
        {"module", &ListedLock::modules}};
    if (const auto list = lists.find(key); list != lists.end())
        add_words(entry.*list->second, value);
    else if (key == "name")
        entry.name = value;
    else if (key == "fix")
        entry.fix = value;
    else if (key == "parks" && (value == "yes" || value == "no"))
        entry.parks = value == "yes";
    else
        return false;
    return true;
}

// A `*` that is none of Go's.
bool is_wildcard(const std::string &pattern, std::size_t at) {
    return pattern[at] == '*' && (at == 0 || pattern[at - 1] != '(');
}

bool matches_any(const std::vector<std::string> &patterns, const Frame &frame) {
    if (frame.function.empty())
        return false;
    const std::string plain = plain_name(frame.function);
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string &pattern) {
        return matches(pattern, pattern[0] == '_' ? frame.function : plain);
    });
}

// Relative to the command, in the build tree and where it was installed: a prefix may be moved.
std::string installed_file() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    const std::string whole(path, length > 0 ? static_cast<std::size_t>(length) : 0);
    return whole.substr(0, whole.rfind('/')) + "/../share/thrum/locks.conf";
}

std::string users_file() {
    const char *config = std::getenv("XDG_CONFIG_HOME"), *home = std::getenv("HOME");
    if (config != nullptr && *config != '\0')
        return std::string(config) + "/thrum/locks.conf";
    return home != nullptr && *home != '\0' ? std::string(home) + "/.config/thrum/locks.conf" : "";
}

} // namespace

// Greedy with one place to come back to: after the last wildcard.
bool matches(const std::string &pattern, const std::string &name) {
    std::size_t at = 0, wildcard = std::string::npos, retry = 0, in = 0;
    while (in < name.size()) {
        if (at < pattern.size() && is_wildcard(pattern, at)) {
            wildcard = at++;
            retry = in;
        } else if (at < pattern.size() && pattern[at] == name[in]) {
            at++;
            in++;
        } else if (wildcard != std::string::npos) {
            at = wildcard + 1;
            in = ++retry;
        } else {
            return false;
        }
    }
    while (at < pattern.size() && is_wildcard(pattern, at))
        at++;
    return at == pattern.size();
}

void LockTable::add(const std::string &text, const std::string &name) {
    std::deque<ListedLock> added;
    std::istringstream lines(text);
    std::string line;
    for (unsigned number = 1; std::getline(lines, line); number++) {
        line = trimmed(line);
        if (line.empty() || line[0] == '#')
            continue;
        const std::string where = name + ", line " + std::to_string(number) + ": ";
        if (line[0] == '[') {
            const auto kind = kKinds.find(line);
            if (kind == kKinds.end())
                throw Failure(kUsage, where + "there is no section " + line +
                                          "; use [lock], [read-lock], [allocator], [interpreter], [count], "
                                          "[idle] or [runtime]");
            added.emplace_front();
            added.front().kind = kind->second;
            continue;
        }
        const std::size_t equals = line.find('=');
        if (added.empty() || equals == std::string::npos)
            throw Failure(kUsage, where + "expected a section, such as [lock], and lines of 'key = value'");
        if (!set(added.front(), trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1))))
            throw Failure(kUsage, where + "unknown key '" + trimmed(line.substr(0, equals)) +
                                      "'; use name, at, through, not, module, fix, or parks = yes");
    }
    entries_.insert(entries_.begin(), added.begin(), added.end());
}

bool LockTable::has(const ListedLock &entry, const Frame &frame) const {
    const bool is_module = entry.modules.empty() || std::any_of(entry.modules.begin(), entry.modules.end(),
                                                                [&](const std::string &pattern) {
                                                                    return matches(pattern, frame.module);
                                                                });
    return is_module && (entry.at.empty() ? !entry.modules.empty() : matches_any(entry.at, frame));
}

bool LockTable::is_runtime(const Frame &frame) const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const ListedLock &entry) { return has(entry, frame); });
}

const ListedLock *LockTable::find(const std::vector<Frame> &stack, const Frame **at) const {
    auto user = std::find_if(stack.begin(), stack.end(), [](const Frame &frame) { return frame.is_user; });
    if (user != stack.end()) // which may be listed itself
        ++user;
    const auto calls_one_of = [&](std::vector<Frame>::const_iterator until,
                                  const std::vector<std::string> &patterns) {
        return std::any_of(stack.begin(), until,
                           [&](const Frame &frame) { return matches_any(patterns, frame); });
    };
    const auto fits = [&](const ListedLock &entry, std::vector<Frame>::const_iterator frame) {
        return entry.kind != ListedLock::kRuntime && has(entry, *frame) &&
               (entry.through.empty() || calls_one_of(frame, entry.through)) &&
               !calls_one_of(user, entry.without);
    };
    for (auto frame = user; frame != stack.begin();) {
        --frame;
        for (const ListedLock &entry : entries_)
            if (fits(entry, frame)) {
                if (at != nullptr)
                    *at = &*frame;
                return &entry;
            }
    }
    return nullptr;
}

LockTable &lock_table() {
    static LockTable table = [] {
        LockTable made;
        const auto installed = process::read_all(installed_file());
        made.add(installed ? *installed : kBuiltInLocks, installed ? installed_file() : "locks.conf");
        if (const auto users = process::read_all(users_file()))
            made.add(*users, users_file());
        return made;
    }();
    return table;
}

} // namespace thrum::stat
