#include "transport/protocol/puller.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace protocol {

Puller::Puller(std::vector<uint64_t> parts, size_t chunk_bytes, int max_reads,
               size_t first_bytes)
    : parts_(std::move(parts)),
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
  while (reads_ < max_reads_ && next_.part < parts_.size()) {
    const size_t most = next_.offset == 0 ? first_bytes_ : chunk_bytes_;
    const uint64_t rest = parts_[next_.part] - next_.part_offset;
    next_.length = static_cast<size_t>(std::min<uint64_t>(most, rest));
    reads.push_back(next_);
    ++reads_;
    next_.offset += next_.length;
    next_.part_offset += next_.length;
    if (next_.length == rest) {
      ++next_.part;
      next_.part_offset = 0;
    }
  }
  return reads;
}

void Puller::Settle() {
  if (reads_ > 0) return;
  if (state_ == State::kReading && next_.part == parts_.size()) {
    state_ = State::kDone;
  } else if (state_ == State::kFailing) {
    state_ = State::kFailed;
  }
}

}  // namespace protocol
}  // namespace penstock
