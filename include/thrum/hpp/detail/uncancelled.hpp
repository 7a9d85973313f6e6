// SPDX-License-Identifier: Apache-2.0
/* Destructors that wait are no cancellation points: thrum_cancel unwinds the stack, and may not leave a destructor by an
 * exception. The request is kept, and acts at the next cancellation point behind the destructor. */
#ifndef THRUM_HPP_DETAIL_UNCANCELLED_HPP
#define THRUM_HPP_DETAIL_UNCANCELLED_HPP

#include "thrum/thrum.h"

namespace thrum::detail {

/* Defers cancellation of the calling thread during its lifetime. */
class uncancelled {
  public:
    uncancelled() noexcept : before_(thrum_set_cancel(0)) {}
    uncancelled(const uncancelled &) = delete;
    ~uncancelled() { thrum_set_cancel(before_); }

  private:
    int before_;
};

} // namespace thrum::detail

#endif
