#include "transport/protocol/puller.h"

#include <algorithm>

namespace penstock {
namespace protocol {

Puller::Puller(uint64_t length, size_t chunk_bytes, int max_reads,
               size_t first_bytes)
    : length_(length),
      chunk_bytes_(chunk_bytes),
      max_reads_(max_reads),
      first_bytes_(first_bytes == 0 ? chunk_bytes : first_bytes) {}

std::vector<Puller::Chunk> Puller::Start() { return NextReads(); }

std::vector<Puller::Chunk> Puller::OnReadDone(const absl::Status& status) {
  --reads_;
  if (!status.ok() && state_ == State::kReading) {
    state_ = State::kFailing;
    error_ = status;
  }
  std::vector<Chunk> reads;
  if (state_ == State::kReading) reads = NextReads();
  Settle();
  return reads;
}

void Puller::Abandon() {
  if (state_ != State::kReading) return;
  state_ = State::kFailing;
  error_ = absl::CancelledError("the message is not wanted any more");
  Settle();
}

std::vector<Puller::Chunk> Puller::NextReads() {
  std::vector<Chunk> reads;
  while (reads_ < max_reads_ && next_offset_ < length_) {
    const size_t most = next_offset_ == 0 ? first_bytes_ : chunk_bytes_;
    const size_t size =
        static_cast<size_t>(std::min<uint64_t>(most, length_ - next_offset_));
    reads.push_back(Chunk{next_offset_, size});
    next_offset_ += size;
    ++reads_;
  }
  return reads;
}

void Puller::Settle() {
  if (reads_ > 0) return;
  if (state_ == State::kReading && next_offset_ == length_) {
    state_ = State::kDone;
  } else if (state_ == State::kFailing) {
    state_ = State::kFailed;
  }
}

}  // namespace protocol
}  // namespace penstock
