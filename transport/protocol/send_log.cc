#include "transport/protocol/send_log.h"

#include <utility>

namespace penstock {
namespace protocol {

constexpr size_t SendLog::kMaxApart;
constexpr size_t SendLog::kMaxJoinedBytes;

void SendLog::Add(uint64_t last_sequence, std::string bytes) {
  bytes_ += bytes.size();
  if (entries_.size() < kMaxApart ||
      entries_.back().bytes.size() + bytes.size() > kMaxJoinedBytes) {
    entries_.push_back(Entry{last_sequence, std::move(bytes)});
    return;
  }
  Entry& joined = entries_.back();
  joined.bytes.reserve(kMaxJoinedBytes);
  joined.bytes.append(bytes);
  joined.last_sequence = last_sequence;
  buffers_->Give(std::move(bytes));
}

void SendLog::Acknowledge(uint64_t ack) {
  while (!entries_.empty() && entries_.front().last_sequence <= ack) {
    Entry entry = entries_.pop_front();
    bytes_ -= entry.bytes.size();
    buffers_->Give(std::move(entry.bytes));
  }
}

std::string SendLog::TakeOldest() {
  std::string bytes = entries_.pop_front().bytes;
  bytes_ -= bytes.size();
  return bytes;
}

}  // namespace protocol
}  // namespace penstock
