// SPDX-License-Identifier: Apache-2.0
//
// Disease: a std::mutex in an object on the heap, locked by a member function of a template, for each entry.
// Cure: entries are gathered and handed over a thousand at a time.
#include <memory>
#include <mutex>
#include <vector>

#include "crew.h"

namespace {

template <typename Number>
class Ledger {
  public:
    SEEN void enter(Number amount) {
        const std::lock_guard<std::mutex> guard(lock_); /* HERE: hot-mutex */
        balance_ = chew(balance_ + amount, 4);
    }
    SEEN void enter_all(const std::vector<Number> &amounts) {
        const std::lock_guard<std::mutex> guard(lock_);
        for (const Number amount : amounts)
            balance_ += amount;
    }

  private:
    std::mutex lock_;
    Number balance_ = 0;
};

std::unique_ptr<Ledger<std::uint64_t>> ledger;

#ifdef CURED
void *trade(void *arg) {
    auto *hand = static_cast<struct hand *>(arg);
    std::vector<std::uint64_t> gathered;
    for (long i = 0; i < hand->share; i++) {
        gathered.push_back(hand->result = chew(hand->result, 30));
        if (gathered.size() == 1000) {
            ledger->enter_all(gathered);
            gathered.clear();
        }
    }
    ledger->enter_all(gathered);
    return nullptr;
}
#else
void *trade(void *arg) {
    auto *hand = static_cast<struct hand *>(arg);
    for (long i = 0; i < hand->share; i++)
        ledger->enter(hand->result = chew(hand->result, 30));
    return nullptr;
}
#endif

} // namespace

int main(int argc, char **argv) {
    ledger = std::make_unique<Ledger<std::uint64_t>>();
    crew_work(crew_size(argc, argv), 12000000, trade);
    return 0;
}
