// SPDX-License-Identifier: Apache-2.0
#include "stat/timeline_rows.hpp"

#include <algorithm>

namespace thrum::stat {

namespace {

constexpr std::size_t kSpansMost = 2000; // of a thread
constexpr std::size_t kAllSpansMost = 200000;

} // namespace

void append(std::vector<Thread::Span> &spans, const Thread::Span &span) {
    if (!spans.empty() && spans.back().doing == span.doing && spans.back().site == span.site &&
        spans.back().is_held_up == span.is_held_up) {
        spans.back().end = span.end;
        spans.back().ran += span.ran;
    } else if (span.end > span.begin) {
        spans.push_back(span);
    }
}

std::vector<Thread::Span> thinned(const std::vector<Thread::Span> &spans, std::size_t threads) {
    const std::size_t rows = std::min(threads, kRowsMost);
    const std::size_t most = std::clamp<std::size_t>(kAllSpansMost / rows, 20, kSpansMost);
    if (spans.size() <= most)
        return spans;
    std::vector<Thread::Span> thin;
    const double begin = spans.front().begin, part = (spans.back().end - begin) / static_cast<double>(most);
    std::size_t at = 0;
    for (std::size_t i = 0; i < most; i++) {
        const double from = begin + part * static_cast<double>(i), to = from + part;
        std::size_t longest = at;
        const auto within = [&](std::size_t which) {
            return std::min(spans[which].end, to) - std::max(spans[which].begin, from);
        };
        for (std::size_t next = at; next < spans.size() && spans[next].begin < to; next++) {
            if (within(next) > within(longest))
                longest = next;
            at = next;
        }
        const Thread::Span &of = spans[longest];
        const double length = of.end - of.begin;
        append(thin, {from, to, of.doing, of.site, length > 0 ? of.ran * part / length : 0, of.is_held_up});
    }
    return thin;
}

double long_sleeps(const std::vector<SleepLook> &looks) {
    double sum = 0;
    for (std::size_t first = 0, next = 0; first < looks.size(); first = next) {
        next = first + 1;
        if (!looks[first].is_asleep)
            continue;
        while (next < looks.size() && looks[next].is_asleep && looks[next].run_ns == looks[first].run_ns)
            next++;
        const double lasted = looks[next - 1].at - looks[first].at;
        sum += lasted > kNapMost ? lasted : 0;
    }
    return sum;
}

Thread row_of(const ProcThread &thread, double begin, const std::string &first_name) {
    Thread row;
    row.id = thread.id;
    row.name = thread.name.empty() ? first_name : thread.name;
    row.cpus = thread.cpus;
    row.scheduling = thread.scheduling;
    row.begin = begin;
    row.end = thread.end;
    row.cpu = static_cast<double>(thread.run_ns) * 1e-9;
    row.run_delay = static_cast<double>(thread.delay_ns) * 1e-9;
    row.voluntary = thread.voluntary;
    row.involuntary = thread.involuntary;
    return row;
}

} // namespace thrum::stat
