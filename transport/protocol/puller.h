// Reads one announced message in pipelined chunks.
//
//   state      event           action                    next
//   kReading   Start           reads up to the limit     kReading
//   kReading   ReadDone ok     next chunk, if any        kReading, or kDone
//                              after the last
//   kReading   ReadDone error  none                      kFailing
//   kReading   Abandon         none                      kFailing
//   kFailing   ReadDone        none                      kFailed after the last
//   kDone, kFailed             terminal: no read is under way, the
//                              destination belongs to the caller again

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_PULLER_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_PULLER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace penstock {
namespace protocol {

class Puller {
 public:
  enum class State { kReading, kDone, kFailing, kFailed };

  struct Chunk {
    uint64_t offset;
    size_t length;
  };

  // Needs length > 0, chunk_bytes > 0, max_reads > 0. The first chunk is of
  // `first_bytes`, if that is not 0.
  Puller(uint64_t length, size_t chunk_bytes, int max_reads,
         size_t first_bytes = 0);

  // The reads to start now.
  std::vector<Chunk> Start();
  // One read has ended; returns those to start in its place.
  std::vector<Chunk> OnReadDone(const absl::Status& status);
  // The message is not wanted any more; reads under way still have to end.
  void Abandon();

  State state() const { return state_; }
  bool finished() const {
    return state_ == State::kDone || state_ == State::kFailed;
  }
  // The first error, for kFailing and kFailed.
  const absl::Status& error() const { return error_; }

 private:
  std::vector<Chunk> NextReads();
  void Settle();

  const uint64_t length_;
  const size_t chunk_bytes_;
  const int max_reads_;
  const size_t first_bytes_;
  uint64_t next_offset_ = 0;
  int reads_ = 0;
  State state_ = State::kReading;
  absl::Status error_;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_PULLER_H_
