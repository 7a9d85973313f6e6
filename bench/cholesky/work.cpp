// SPDX-License-Identifier: Apache-2.0
//
// See work.hpp.
#include "work.hpp"

#include <thrum/thrum.h>

#include <cstdio>
#include <memory>

#include "../preempt.hpp"
#include "crew.hpp"
#include "kernels.hpp"
#include "matrix.hpp"

namespace cholesky {

namespace {

std::unique_ptr<Crew> crew_of(const std::string &name, const Sizes &sizes) {
    if (name == kOsThreads)
        return os_threads(sizes);
    return name == kGang ? gang(sizes) : ults(sizes);
}

// Each task is a call of the library by a team.
void factorise(Crew *crew, unsigned members, void (*patch)(), Matrix *matrix) {
    Graph graph(matrix->tiles());
    crew->run(&graph, [&](const Task &task) {
        const auto [i, j, k] = task;
        Call call(task.kind(), static_cast<int>(matrix->tile()), matrix->at(i, k), matrix->at(j, k),
                  matrix->at(i, j), members, patch);
        crew->team([&](unsigned member) { call.execute(member); });
    });
}

} // namespace

void work(const std::vector<std::string> &words) {
    const auto number = [&](std::size_t at) { return static_cast<unsigned>(std::stoul(words.at(at))); };
    const Sizes sizes{number(3), number(4), number(5)};
    const double enough = std::stod(words.at(6)) * 1e9;
    const std::unique_ptr<Crew> crew = crew_of(words.at(0), sizes);
    if (crew == nullptr)
        return preempt::say_unavailable();

    const Matrix untouched(number(1), number(2));
    const std::vector<double> expected = untouched.factor();
    Matrix matrix = untouched;
    std::vector<double> times, cpu_times, errors;
    const double began = preempt::now_ns();
    do {
        matrix = untouched;
        const double since = preempt::now_ns(), cpu_since = preempt::cpu_ns();
        factorise(crew.get(), sizes.members, words.at(0) == kPatched ? thrum_yield : nullptr, &matrix);
        times.push_back(preempt::now_ns() - since);
        cpu_times.push_back(preempt::cpu_ns() - cpu_since);
        errors.push_back(matrix.error(expected));
    } while (preempt::now_ns() - began < enough);
    const double preemptions = crew->preemptions() / static_cast<double>(times.size());
    std::printf("%.0f %.0f %.3f %.6g\n", bench::quantile(&times, 0.5), bench::quantile(&cpu_times, 0.5),
                preemptions, bench::quantile(&errors, 1));
}

} // namespace cholesky
