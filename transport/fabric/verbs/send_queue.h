// What a queue pair has been asked to do, oldest first.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_SEND_QUEUE_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_SEND_QUEUE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "transport/fabric/verbs/api.h"

namespace penstock {
namespace fabric {
namespace verbs {

// A queue pair works in order and tells of the end of some requests only; the
// end of one is the end of all before it. Requests are gathered by Add() and
// handed over together by Post(): one doorbell. Not thread-safe.
class SendQueue {
 public:
  enum class Kind : uint8_t {
    kMessage,
    kRead,
    kBinding,
    kInvalidation,
  };
  // A request that has ended, as Add() named it.
  struct Done {
    Kind kind;
    uint64_t cookie;
  };
  enum class Signal { kWhenDue, kNow };

  // At most `capacity` requests that have not ended. No more than
  // `signal_every` of kWhenDue in a row go without a completion.
  SendQueue(Api* api, uint32_t capacity, uint32_t signal_every);

  bool full() const { return added_ - ended_ == entries_.size(); }
  // Requests that have been posted and have not ended.
  uint64_t under_way() const { return posted_ - ended_; }
  // Of these, whether the last will be told of.
  bool last_is_signaled() const { return since_signal_ == 0; }
  // Of all requests ever, those that have ended, and those that were posted.
  uint64_t ended() const { return ended_; }
  uint64_t posted() const { return posted_; }

  // A request with one piece of memory, to be filled in by the caller until
  // Post(): opcode, flags, piece, remote part. Needs !full().
  ibv_send_wr* Add(Kind kind, uint64_t cookie, Signal signal);
  // Hands everything added to the device. An error: the connection is lost.
  absl::Status Post(ibv_qp* qp);

  // The oldest request, if it ended with or before that of completion `wr_id`.
  // Call it until false.
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
  // Ordinals: ended_ <= posted_ <= added_.
  uint64_t ended_ = 0;
  uint64_t posted_ = 0;
  uint64_t added_ = 0;
  uint32_t since_signal_ = 0;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_SEND_QUEUE_H_
