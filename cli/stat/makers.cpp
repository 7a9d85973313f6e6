// SPDX-License-Identifier: Apache-2.0
//
// Where the program creates its threads: recorded at each call of pthread_create() by libthrum-stat.so in it
// (stat/makers.c). For programs in which the sampler has seen threads come and go: their creator hardly ever sleeps.
#include "stat/collect.hpp"
#include "tools/failure.hpp"

namespace thrum::stat {

namespace {

class Makers : public MakersLayer {
  public:
    std::vector<std::string> environment() const override { return probe_.environment(); }
    void forked(pid_t child) override { maps_.begin(child); }
    void poll(double now) override {
        maps_.is_another();
        maps_.poll(now);
    }
    void finish() override;

  private:
    ProbeFile probe_{PROBE_MAKERS_ONLY};
    ProbedMaps maps_{probe_, maps};
};

void Makers::finish() {
    maps_.finish();
    makers = makers_of(probe_.get());
    how_known.push_back(
        "Threads come and go: in a separate run a preloaded library recorded where they are created.");
    if (const std::string trouble = probe_.trouble(); !trouble.empty())
        warnings.push_back("where threads are created is unknown: " + trouble);
}

} // namespace

std::unique_ptr<MakersLayer> make_makers(const std::string &program, std::string &why_not) {
    why_not = preload_refusal(program);
    try {
        if (why_not.empty())
            return std::make_unique<Makers>();
    } catch (const Failure &failure) {
        why_not = failure.what();
    }
    return nullptr;
}

} // namespace thrum::stat
