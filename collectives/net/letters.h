// Messages between two ranks over their connection.

#ifndef PENSTOCK_COLLECTIVES_NET_LETTERS_H_
#define PENSTOCK_COLLECTIVES_NET_LETTERS_H_

#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/letter.h"
#include "collectives/net/ledger.h"
#include "collectives/net/links.h"
#include "transport/base/mutex.h"

namespace penstock::collectives {

// Numbers the letters between each two ranks by their tag. Thread-safe.
class Letters {
 public:
  // A letter of this size does not wait for its receiver.
  static constexpr int64_t kBuffered = 64 * 1024;

  // `ledger` and `links` must outlive this object.
  Letters(Ledger* ledger, Links* links, absl::Duration timeout)
      : ledger_(ledger), links_(links), timeout_(timeout) {}

  absl::Status Send(const Letter& letter, const void* data);
  absl::Status Receive(const Letter& letter, void* data);

 private:
  // By rank and tag.
  using Numbers = std::map<std::pair<int, uint32_t>, uint64_t>;

  uint64_t NextNumber(Numbers* numbers, const Letter& letter);

  Ledger* const ledger_;
  Links* const links_;
  const absl::Duration timeout_;
  base::Mutex mu_;
  Numbers sent_ ABSL_GUARDED_BY(mu_);
  Numbers received_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_LETTERS_H_
