// The requests of a queue pair, oldest first.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_SEND_QUEUE_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_SEND_QUEUE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "transport/fabric/verbs/api.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Collects requests by Add(), and passes them to the device together by Post(),
// with one doorbell. The device works in order, and reports only the completion
// of signaled requests. A completion therefore also ends all earlier requests.
// Not thread-safe.
class SendQueue {
 public:
  enum class Kind : uint8_t {
    kPacket,
    kRead,
    kBinding,
    kInvalidation,
  };
  // A request that has ended, with the arguments of Add().
  struct Done {
    Kind kind;
    uint64_t cookie;
  };
  // Requests a completion of this request, or leaves the decision to
  // `signal_every`.
  enum class Signal { kWhenDue, kNow };

  // Holds at most `capacity` requests that have not ended. Leaves at most
  // `signal_every` in a row unsignaled.
  SendQueue(Api* api, uint32_t capacity, uint32_t signal_every);

  bool full() const { return room() == 0; }
  // Returns the number of further requests that fit.
  size_t room() const { return entries_.size() - (added_ - ended_); }
  // Returns the number of posted requests that have not ended.
  uint64_t under_way() const { return posted_ - ended_; }
  // Returns true if the last request is signaled.
  bool last_is_signaled() const { return since_signal_ == 0; }
  // Returns true if a signaled request is in flight, so that a completion will
  // arrive.
  bool awaits_completion() const { return added_ - ended_ > since_signal_; }
  // Return the number of requests that have ever ended, and that were ever
  // posted.
  uint64_t ended() const { return ended_; }
  uint64_t posted() const { return posted_; }

  // Adds a request with one piece of memory. The caller fills in opcode, flags,
  // piece and remote part before Post(). Requires !full().
  ibv_send_wr* Add(Kind kind, uint64_t cookie, Signal signal);
  // Passes all added requests to the device. After an error the connection is
  // lost.
  absl::Status Post(ibv_qp* qp);

  // Removes the oldest request, if it ended with the completion `wr_id` or
  // before. Call it for each completion until it returns false.
  bool Pop(uint64_t wr_id, Done* done);

 private:
  struct Entry {
    Done done;
    ibv_send_wr request;
    ibv_sge piece;
  };
  Entry& At(uint64_t ordinal) { return entries_[ordinal % entries_.size()]; }

  Api* const api_;
  const uint32_t signal_every_;
  std::vector<Entry> entries_;
  // Count the requests of all time: ended_ <= posted_ <= added_.
  uint64_t ended_ = 0;
  uint64_t posted_ = 0;
  uint64_t added_ = 0;
  uint32_t since_signal_ = 0;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_SEND_QUEUE_H_
