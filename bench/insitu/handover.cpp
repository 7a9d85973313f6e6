// SPDX-License-Identifier: Apache-2.0
//
// See handover.hpp. libthrum's channel and mutex serve all arms: they know ULTs and kernel threads alike.
#include "handover.hpp"

#include "preempt.hpp"

namespace insitu {

using preempt::check;

Handover::Handover(Threads *threads, Looking looking, Analysis *analysis, Size size, Behind behind)
    : threads_(threads), looking_(looking), analysis_(analysis), behind_(behind), buffers_(size.buffers),
      storage_(size.buffers) {
    check(thrum_mutex_init(&adding_, 0), "thrum_mutex_init");
    check(thrum_channel_init(&free_, sizeof(Buffer *), storage_.size(), storage_.data()),
          "thrum_channel_init");
    for (Buffer &buffer : buffers_) {
        buffer.handover = this;
        for (unsigned i = 0; i < size.shares; i++)
            buffer.shares.push_back({&buffer, i});
        Buffer *free = &buffer;
        check(thrum_channel_send(&free_, &free), "thrum_channel_send");
    }
}

Handover::~Handover() {
    finish();
    thrum_channel_destroy(&free_);
    thrum_mutex_destroy(&adding_);
}

void Handover::offer(Simulation *simulation) {
    offered_++;
    Buffer *buffer = take();
    if (buffer == nullptr)
        return;
    simulation->show(&buffer->snapshot);
    const auto count = static_cast<unsigned>(buffer->shares.size());
    buffer->left = count;
    if (looking_ == Looking::kBeside)
        for (Share &share : buffer->shares)
            threads_->look(do_share, &share);
    else
        threads_->run([&](unsigned member) {
            for (unsigned i = member; i < count; i += threads_->size())
                look(buffer->shares[i]);
        });
}

Handover::Buffer *Handover::take() {
    Buffer *buffer = nullptr;
    if (thrum_channel_try_receive(&free_, &buffer) == 0)
        return buffer;
    if (behind_ == Behind::kLeaveOut) {
        left_out_++;
        return nullptr;
    }
    waits_++;
    const double since = preempt::now_ns();
    check(thrum_channel_receive(&free_, &buffer), "thrum_channel_receive");
    waited_ns_ += preempt::now_ns() - since;
    return buffer;
}

// If a thread has all the buffers, none is being read.
void Handover::finish() {
    std::vector<Buffer *> all(buffers_.size());
    for (Buffer *&buffer : all)
        check(thrum_channel_receive(&free_, &buffer), "thrum_channel_receive");
    for (Buffer *buffer : all)
        check(thrum_channel_send(&free_, &buffer), "thrum_channel_send");
}

void *Handover::do_share(void *share) {
    const auto *own = static_cast<const Share *>(share);
    own->buffer->handover->look(*own);
    return nullptr;
}

void Handover::look(const Share &share) {
    Buffer *buffer = share.buffer;
    const Analysis::Found found =
        analysis_->look(buffer->snapshot, share.which, static_cast<unsigned>(buffer->shares.size()));
    thrum_mutex_lock(&adding_);
    analysis_->add(found);
    check(thrum_mutex_unlock(&adding_), "thrum_mutex_unlock");
    if (buffer->left.fetch_sub(1) > 1)
        return;
    looked_at_++;
    check(thrum_channel_send(&free_, &buffer), "thrum_channel_send");
}

} // namespace insitu
