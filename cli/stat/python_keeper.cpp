// SPDX-License-Identifier: Apache-2.0
#include "stat/python_keeper.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "tools/descriptor.hpp"

namespace thrum::stat {

namespace {

constexpr std::size_t kThreadsMost = 32; // that are read for the samples of one sweep

} // namespace

void PythonKeeper::look(pid_t pid, const std::vector<Mapping> &mappings, Python::Read read,
                        std::string &why_not) {
    if (!python_)
        python_ = Python::find(pid, mappings, std::move(read), why_not);
}

std::size_t PythonKeeper::keep(pid_t thread) {
    std::vector<Frame> frames = python_ ? python_->frames(thread) : std::vector<Frame>();
    if (frames.empty())
        return SIZE_MAX;
    std::string text;
    for (const Frame &frame : frames)
        text += frame.function + '|' + frame.file + ':' + std::to_string(frame.line) + '\n';
    auto &kept = observed_.python;
    const auto [at, is_new] = known_.try_emplace(std::move(text), kept.size());
    if (is_new)
        kept.push_back(std::move(frames));
    return at->second;
}

// --- of CPU samples -----------------------------------------------------------------------------------

void PythonOfSamples::another_program() {
    keeper_.forget();
    maps_.clear();
}

void PythonOfSamples::look() {
    const auto &maps = profile_.observed.maps;
    if (keeper_.is_there() || maps.empty() || maps.back().text == maps_)
        return;
    maps_ = maps.back().text;
    const auto memory = std::make_shared<Descriptor>(
        open(("/proc/" + std::to_string(child_) + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
    const auto read = [memory](std::uint64_t address, void *into, std::size_t bytes) {
        return pread(memory->get(), into, bytes, static_cast<off_t>(address)) == static_cast<ssize_t>(bytes);
    };
    std::string why_not;
    keeper_.look(child_, mappings_of(maps_), read, why_not);
    auto &warnings = profile_.warnings;
    if (!why_not.empty() && std::find(warnings.begin(), warnings.end(), why_not) == warnings.end())
        warnings.push_back(why_not);
}

void PythonOfSamples::add(std::size_t first) {
    look();
    if (!keeper_.is_there())
        return;
    auto &samples = profile_.samples;
    std::map<pid_t, std::size_t> read;
    for (std::size_t i = std::min(first, samples.size()); i < samples.size(); i++) {
        const auto [at, is_new] = read.try_emplace(samples[i].thread, SIZE_MAX);
        if (is_new && read.size() <= kThreadsMost)
            at->second = keeper_.keep(samples[i].thread);
        samples[i].python = at->second;
    }
}

void PythonOfSamples::finish() {
    if (!profile_.observed.python.empty())
        profile_.how_known.push_back(
            "Python functions in the CPU profile were read up to 10 ms after their sample.");
}

} // namespace thrum::stat
