// Measures how long a session waits for credit to send.

#ifndef PENSTOCK_TRANSPORT_SESSION_SEND_STALL_H_
#define PENSTOCK_TRANSPORT_SESSION_SEND_STALL_H_

#include <cstdint>
#include <utility>

#include "transport/metrics/labels.h"
#include "transport/session/counters.h"
#include "transport/session/tuning.h"

namespace penstock {
namespace session {

// Times the current stall of a session's output, and adds ended stalls to the
// counters. Does nothing without a clock. Not thread-safe.
class SendStall {
 public:
  // Refers to all arguments, which must outlive this object.
  SendStall(const Tuning& tuning, Counters* counters)
      : tuning_(tuning), counters_(counters) {}

  bool ongoing() const { return begun_ns_ != 0; }
  // Records if frames are waiting now. Call after each change that may start or
  // end a stall.
  void Observe(bool stalls) {
    if (tuning_.now_ns == nullptr || stalls == ongoing()) return;
    const uint64_t now = tuning_.now_ns();
    if (stalls) {
      fabric_ = counters_->sending;
      begun_ns_ = now;
      ++counters_->credit_stalls[static_cast<int>(fabric_)];
    } else {
      counters_->credit_stall_ns[static_cast<int>(fabric_)] +=
          now - std::exchange(begun_ns_, 0);
    }
  }

 private:
  const Tuning& tuning_;
  Counters* const counters_;
  uint64_t begun_ns_ = 0;  // 0: no stall
  metrics::Fabric fabric_ = metrics::Fabric::kTcp;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_SEND_STALL_H_
