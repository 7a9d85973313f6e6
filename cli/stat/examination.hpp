// SPDX-License-Identifier: Apache-2.0
//
// The runs that `thrum stat` makes of a program, from the bare ones to those that are looked at, and what is concluded from
// them. stat.cpp reads the command line and prints the report.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interrupts.hpp"
#include "stat/child_watch.hpp"
#include "stat/layers.hpp"
#include "stat/process_tree.hpp"
#include "stat/rate.hpp"
#include "stat/report.hpp"
#include "stat/run.hpp"
#include "stat/sweep.hpp"
#include "tools/output_file.hpp"
#include "tools/progress.hpp"

namespace thrum::stat {

// What is wanted.
struct Options {
    std::vector<unsigned> sweep;
    Telling telling;
    std::optional<unsigned long> runs;
    std::string input, html, trace, folded; // empty: not given
    std::shared_ptr<const Rate> rate;       // what the program prints of its speed; nothing: not asked for
    pid_t pid = 0;
    std::optional<double> seconds;
    double time_limit = 0;       // seconds for one run; 0: none
    std::string time_limit_text; // as it was given
    std::string output;          // a file in the place of standard error, or output; empty: not given
    bool exact = false, json = false, show_output = false, no_profile = false;
    bool follow = true; // the processes that the program starts

    // Standard output is for what this command writes: what the program prints there goes to standard error.
    bool writes_to_output() const {
        const auto is_it = [](const std::string &file) { return file == OutputFile::kStandard; };
        return (json && output.empty()) || is_it(output) || is_it(html) || is_it(trace) || is_it(folded);
    }
};

class Examination {
  public:
    Examination(const Options &options, Report &report);

    // Either may end early, by an interrupt or because the program fails; the report holds what was seen until then.
    void run_program(const std::vector<std::string> &words);
    void watch_process();

    // How the command ends, as from waitpid: like the first run that did not end with 0. An interrupted sweep is no
    // run of the program's.
    int status() const;

  private:
    void look_at_host();
    void prepare(const std::vector<std::string> &words);
    void one_number();
    void sweep();
    bool warm_up();
    bool measure_round(bool backwards, bool has_first);
    void measure_rounds(bool has_first);
    void look_closer();
    bool measure_bare(Runs &runs, const Streams &streams);
    Measured run_bare(const Launch &launch, Streams streams);
    Measured run_once(const Launch &launch, const Streams &streams, const std::vector<Layer *> &layers);
    Measured observe(const Launch &launch, const Streams &streams, bool whole);
    void take_processes(const Measured &measured, const ProcessTree &tree);
    void take_children(ChildWatch &children, const Load &load);
    void take_sampled(const Sampler &sampler, const Launch &launch, const Measured &measured);
    void count_exactly(const Launch &launch);
    void look_for_makers(const Launch &launch);
    void look_for_allocations(const Launch &launch);
    void take_notes(const Layer &layer);
    void count_new_threads();
    void conclude_all();

    bool take_status(const Launch &launch, const Measured &measured);
    void compare_status(const std::string &which, const Measured &measured);
    void warn_of_filter(const Measured &measured, const std::string &way_out);
    bool profiles_both() const { return runs_.size() > 1 && !options_.no_profile; }
    bool may_continue() const { return interrupts_.caught() == 0 && failure_.empty(); }
    Streams streams(bool first) const;
    std::function<void()> on_tick() {
        return [this] {
            if (progress_)
                progress_->draw();
        };
    }
    void show_progress(const std::string &note);
    void know(const std::string &sentence) { add_once(report_.how_known, sentence); }
    void warn(const std::string &sentence) { add_once(report_.warnings, sentence); }
    static void add_once(std::vector<std::string> &list, const std::string &sentence) {
        if (std::find(list.begin(), list.end(), sentence) == list.end())
            list.push_back(sentence);
    }

    const Options &options_;
    Report &report_;
    Interrupts interrupts_;
    const off_t input_begin_ = lseek(STDIN_FILENO, 0, SEEK_CUR); // of stdin, before a run reads of it
    std::unique_ptr<Progress> progress_;
    Launch launch_;
    std::vector<Runs> runs_; // by threads
    std::unique_ptr<ExactLayer> exact_;
    double work_ = 0; // of the first run whose rate was read: that times its wall time
    std::string failure_;
    int status_ = 0;
    std::optional<int> first_status_;
    std::size_t done_ = 0; // runs, for the progress line
};

} // namespace thrum::stat
