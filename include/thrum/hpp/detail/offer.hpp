// SPDX-License-Identifier: Apache-2.0
/* Values that when_any offers to several receivers, one of which gets it.
 *
 * A value that is passed by pointer is moved to where that points before the wait begins, since a receiver may take it at
 * any time from then on. So several operands that offer the same value must offer the same pointer: the first of them, in
 * the order of the arguments, moves the value, and the others refer to that one. */
#ifndef THRUM_HPP_DETAIL_OFFER_HPP
#define THRUM_HPP_DETAIL_OFFER_HPP

#include <concepts>
#include <exception>
#include <utility>

namespace thrum::detail {

/* Calls `action` while an exception or the end of the thread unwinds the stack; an exception from it is dropped. */
template <class Action>
void quietly(Action action) noexcept {
    try {
        action();
    } catch (...) {
    }
}

/* An operand of when_any that offers `source`. */
class offer {
  public:
    explicit offer(const void *source) noexcept : source_(source) {}
    offer(const offer &) = delete;

  protected:
    ~offer() = default;

    offer *first_ = this; /* the operand that has moved the value */

  private:
    friend class offers;

    const void *source_;
    offer *next_ = nullptr;
};

/* The offers of one when_any, one for each source. */
class offers {
  public:
    template <class Operand>
    void add(Operand &operand) noexcept {
        if constexpr (std::derived_from<Operand, offer>)
            add_offer(operand);
        else if constexpr (requires { operand.add_to(*this); }) /* it has another operand in it */
            operand.add_to(*this);
    }

  private:
    void add_offer(offer &one) noexcept {
        offer *first = list_;
        while (first != nullptr && first->source_ != one.source_)
            first = first->next_;
        if (first == nullptr) {
            one.next_ = list_;
            first = list_ = &one;
        }
        one.first_ = first;
    }

    offer *list_ = nullptr;
};

/* These tell each operand how the wait ended, if it has the function for it (when_any.hpp). */
template <class Operand>
void tell_sent(Operand &operand, int result) noexcept {
    if constexpr (requires { operand.sent(); })
        if (result == 0)
            operand.sent();
}
template <class Operand>
void tell_unwaited(Operand &operand, std::exception_ptr &thrown) noexcept {
    if constexpr (requires { operand.unwaited(); }) {
        try {
            operand.unwaited();
        } catch (...) {
            if (thrown == nullptr)
                thrown = std::current_exception();
        }
    }
}
template <class Operand>
void tell_waited(Operand &operand, int result) {
    if constexpr (requires { operand.waited(result); })
        operand.waited(result);
}

} // namespace thrum::detail

#endif
