// Waits for a peer, with a timeout.

#ifndef PENSTOCK_COLLECTIVES_NET_PATIENCE_H_
#define PENSTOCK_COLLECTIVES_NET_PATIENCE_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/net/ledger.h"
#include "collectives/net/message.h"

namespace penstock::collectives {

// Waits for events, and returns an error after the timeout. Tells a late peer
// which operation this rank has called. Two ranks that wait for each other in
// different operations therefore notice the mismatch.
//
// Thread-compatible.
class Patience {
 public:
  // Sends a notice to a peer.
  using Tell = std::function<void(int peer, const Message& notice)>;

  // Waits for messages with tags, about which no notices are sent.
  Patience(Ledger* ledger, absl::Duration timeout)
      : Patience(ledger, nullptr, 0, {}, timeout) {}
  // `number` and `words` identify a collective operation.
  Patience(Ledger* ledger, Tell tell, uint64_t number, const CallWords& words,
           absl::Duration timeout)
      : ledger_(ledger),
        tell_(std::move(tell)),
        number_(number),
        words_(words),
        timeout_(timeout) {}

  // Restarts the timeout. Call this function after each event. A wait for
  // another peer, or for something else, restarts it as well.
  void Restart() { begun_ = absl::InfiniteFuture(); }

  // Waits for a short time until there are more than `seen` events. Returns the
  // error that ends the group, if any: for example that the wait for `peer`
  // took too long, or that `peer` has left.
  absl::Status Await(int peer, uint32_t seen);
  // Like Await(), but waits until the peer has received parts. If the peer has
  // left, waits until the connection to it ends, because the peer may have
  // received the parts.
  absl::Status AwaitAnswers(int peer, uint32_t seen);
  // Like Await(), but waits until a part of the peer has come to its end, also
  // after the peer has left.
  absl::Status AwaitEndOfPart(int peer, uint32_t seen);

 private:
  // Does the work of the functions above. `missing` is a text for errors that
  // names what the peer did not do.
  absl::Status AwaitUnless(bool is_absent, int peer, uint32_t seen,
                           absl::string_view missing);

  Ledger* const ledger_;
  const Tell tell_;
  const uint64_t number_;
  const CallWords words_;
  const absl::Duration timeout_;
  absl::Time begun_ = absl::InfiniteFuture();
  // The peer of the present wait, and what it did not do yet.
  int peer_ = -1;
  absl::string_view missing_;
  bool has_noticed_ = false;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_PATIENCE_H_
