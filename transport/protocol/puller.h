// Decides how to read one announced message, in chunks, of which several are
// read concurrently.
//
//   state      event           action                    next
//   kReading   Start           reads up to the limit     kReading
//   kReading   ReadDone ok     next chunk, if any        kReading, or kDone
//                                                        after the last
//   kReading   ReadDone error  none                      kFailing *
//   kReading   Abandon         none                      kFailing *
//   kFailing   ReadDone        none                      kFailing *
//   kDone, kFailed             terminal: no read is in flight, and the caller
//                              may use or free the destination
//
// * or kFailed, if no read is in flight

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_PULLER_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_PULLER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace penstock {
namespace protocol {

// The reads of one message. Not thread-safe.
class Puller {
 public:
  enum class State { kReading, kDone, kFailing, kFailed };

  // A range of bytes in one part of the message.
  struct Chunk {
    size_t part;
    uint64_t part_offset;
    uint64_t offset;  // in the message
    size_t length;
  };

  // Plans the reads of one message, with up to `max_reads` in flight. `parts`
  // are the lengths of the message's parts, in order. The first chunk has
  // `first_bytes`, or `chunk_bytes` if `first_bytes` is 0. Requires at least
  // one part, no empty part, chunk_bytes > 0 and max_reads > 0.
  Puller(std::vector<uint64_t> parts, size_t chunk_bytes, int max_reads,
         size_t first_bytes = 0);

  // Returns the first reads for the caller to start.
  std::vector<Chunk> Start();
  // Records that a read has ended. Returns the next reads to start.
  std::vector<Chunk> OnReadDone(const absl::Status& status);
  // Abandons the message, which is no longer wanted. Starts no more reads, but
  // reads in flight still have to end.
  void Abandon();

  State state() const { return state_; }
  bool finished() const {
    return state_ == State::kDone || state_ == State::kFailed;
  }
  // Returns the first error, in kFailing and kFailed.
  const absl::Status& error() const { return error_; }

 private:
  std::vector<Chunk> NextReads();
  void Settle();

  const std::vector<uint64_t> parts_;
  const size_t chunk_bytes_;
  const int max_reads_;
  const size_t first_bytes_;
  Chunk next_{0, 0, 0, 0};  // where the next chunk begins
  int reads_ = 0;           // under way
  State state_ = State::kReading;
  absl::Status error_;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_PULLER_H_
