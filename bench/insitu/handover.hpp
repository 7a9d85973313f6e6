// SPDX-License-Identifier: Apache-2.0
//
// From the simulation to the analysis: snapshots are copied into one of a few buffers and read by threads of the
// analysis, each of which has a share; the last one returns the buffer.
//
// There are no more buffers, so snapshots do not pile up where the analysis is slower than the simulation. When none
// is free the policy decides about the next snapshot: the simulation waits for a buffer, or the snapshot is left out.
// Both are counted.
#ifndef THRUM_BENCH_INSITU_HANDOVER_HPP
#define THRUM_BENCH_INSITU_HANDOVER_HPP

#include <thrum/sync.h>

#include <atomic>
#include <vector>

#include "analysis.hpp"
#include "arms.hpp"
#include "simulation.hpp"

namespace insitu {

enum class Behind { kWait, kLeaveOut };

class Handover {
  public:
    struct Size {
        unsigned buffers, shares;
    };
    Handover(Threads *threads, Looking looking, Analysis *analysis, Size size, Behind behind);
    // Returns when all is done that was begun.
    ~Handover();
    Handover(const Handover &) = delete;
    Handover &operator=(const Handover &) = delete;

    // Hands a snapshot over. From: the thread that drives the simulation.
    void offer(Simulation *simulation);
    // Waits until all that were handed over have been looked at. From there, too.
    void finish();

    unsigned offered() const { return offered_; }
    unsigned left_out() const { return left_out_; }
    unsigned looked_at() const { return looked_at_; }
    unsigned waits() const { return waits_; } // a wait under way is counted; by any thread
    double waited_ns() const { return waited_ns_; }

  private:
    struct Buffer;
    struct Share {
        Buffer *buffer;
        unsigned which;
    };
    struct Buffer {
        Handover *handover;
        Snapshot snapshot;
        std::vector<Share> shares;
        std::atomic<unsigned> left; // shares
    };
    Buffer *take();                     // null: the snapshot is left out
    static void *do_share(void *share); // a thread of the analysis
    void look(const Share &share);

    Threads *threads_;
    Looking looking_;
    Analysis *analysis_;
    Behind behind_;
    std::vector<Buffer> buffers_;
    std::vector<Buffer *> storage_; // of free_
    thrum_channel_t free_;          // buffers
    thrum_mutex_t adding_;          // to the analysis
    unsigned offered_ = 0, left_out_ = 0;
    std::atomic<unsigned> waits_{0};
    double waited_ns_ = 0;
    std::atomic<unsigned> looked_at_{0};
};

} // namespace insitu

#endif
