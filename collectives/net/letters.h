// Messages between two ranks over their connection.

#ifndef PENSTOCK_COLLECTIVES_NET_LETTERS_H_
#define PENSTOCK_COLLECTIVES_NET_LETTERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "collectives/letter.h"
#include "collectives/net/ledger.h"
#include "collectives/net/links.h"
#include "collectives/net/window.h"
#include "transport/base/mutex.h"

namespace penstock::collectives {

// The letters between this rank and the others, numbered by tag. Thread-safe.
class Letters {
 public:
  // Limits the size of small letters, in bytes. A small letter does not wait
  // for its receiver, unless the limits below are reached.
  static constexpr int64_t kBuffered = 64 * 1024;
  // Limit the small letters that a peer has not acknowledged, in bytes as
  // CostOfPart() counts. The first is for the letters with one tag, the second
  // for all letters.
  static constexpr int64_t kTagWindow = 4 * 1024 * 1024;
  static constexpr int64_t kPeerWindow = 64 * 1024 * 1024;

  // `ledger` and `links` must outlive this object.
  Letters(Ledger* ledger, Links* links, absl::Duration timeout)
      : ledger_(ledger), links_(links), timeout_(timeout) {}

  absl::Status Send(const Letter& letter, const void* data);
  absl::Status Receive(const Letter& letter, void* data);

 private:
  // A rank and a tag.
  using Stream = std::pair<int, uint32_t>;
  struct Sent {
    uint64_t letters = 0;
    std::shared_ptr<Window> small;
  };

  // Returns the key of the next letter. Returns nullopt if the letter is small
  // and there is no room. In that case no number is used up, because the
  // receiver would wait for that number before it accepts later letters.
  absl::optional<Key> NextKey(const Letter& letter, bool is_small,
                              std::shared_ptr<Window>* window);
  absl::Status SendSmall(const Letter& letter, const void* data);
  absl::Status SendLarge(const Letter& letter, const void* data);
  absl::Status SendPart(const Letter& letter, const Key& key, const void* data,
                        int64_t bytes, const std::shared_ptr<Window>& window);

  Ledger* const ledger_;
  Links* const links_;
  const absl::Duration timeout_;
  base::Mutex mu_;
  std::map<Stream, Sent> sent_ ABSL_GUARDED_BY(mu_);
  // The windows of small letters with any tag, by rank.
  std::map<int, std::shared_ptr<Window>> small_ ABSL_GUARDED_BY(mu_);
  // The number of letters received in each stream.
  std::map<Stream, uint64_t> received_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_LETTERS_H_
