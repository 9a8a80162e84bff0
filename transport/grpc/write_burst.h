// Recognises bursts of short writes, which can share a system call.

#ifndef PENSTOCK_TRANSPORT_GRPC_WRITE_BURST_H_
#define PENSTOCK_TRANSPORT_GRPC_WRITE_BURST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock {
namespace core {

// Decides if a short write may wait for further writes of its connection. A
// sendmsg() over loopback takes longer than gRPC and the program take for a
// short message, and wakes the receiver. A program that sends a stream of short
// messages is limited by these calls. With merged writes it is faster.
//
// A burst begins once this side has sent far more than it has received. Clients
// and servers of unary calls never have a burst, however many calls they make
// at a time: merging would delay calls, and cost CPU time. A program that
// computes between its writes sends each of them immediately.
//
// Thread-compatible.
class WriteBurst {
 public:
  // The lead, in writes, at which a burst begins.
  static constexpr int64_t kLead = 32;
  // Two writes are close if less than this time passes between the end of one
  // and the beginning of the next. With 5 us, streams of 1 KiB gained nothing,
  // because gRPC and the scheduler often take longer.
  static constexpr absl::Duration Gap() { return absl::Microseconds(20); }
  // Merges writes up to this size, in bytes. A receiver takes that many with
  // one system call (fabric/tcp/receive.cc).
  static constexpr size_t kMostBytes = 16 * 1024;

  // Records that `bytes` wait to be written at `now`. `received` counts the
  // packets that this side has received since the beginning. Returns true if
  // the bytes may wait for more.
  bool MayWait(size_t bytes, uint64_t received, absl::Time now) {
    const bool is_close = now - end_ < Gap();
    const auto answers = static_cast<int64_t>(received - received_);
    lead_ += 1 - answers * kWritesPerPacket - (is_close ? 0 : kWritesPerGap);
    lead_ = std::min(std::max(lead_, kLeastLead), kMostLead);
    received_ = received;
    end_ = now;
    return is_close && lead_ > kLead && bytes < kMostBytes;
  }
  // Records the end of a write.
  void EndWrite(absl::Time now) { end_ = now; }

 private:
  // The writes that a received packet cancels. Unary calls bring at least one
  // packet for each write. A stream in one direction brings one for many
  // writes.
  static constexpr int64_t kWritesPerPacket = 2;
  // The writes that a gap cancels. A burst survives single gaps, in which the
  // stream waits for its receiver.
  static constexpr int64_t kWritesPerGap = 16;
  // Limits how long a burst goes on after its writes have become rare.
  static constexpr int64_t kMostLead = 2 * kLead;
  // Limits how many writes a burst takes to begin. A client that has just
  // received a full buffer of answers may write as many requests, before it
  // receives again.
  static constexpr int64_t kLeastLead = -256;

  int64_t lead_ = 0;
  uint64_t received_ = 0;
  absl::Time end_;  // of the last write
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_WRITE_BURST_H_
