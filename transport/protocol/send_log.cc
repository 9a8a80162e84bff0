#include "transport/protocol/send_log.h"

#include <utility>

namespace penstock {
namespace protocol {

void SendLog::Add(uint64_t last_sequence, std::string bytes) {
  bytes_ += bytes.size();
  entries_.push_back(Entry{last_sequence, std::move(bytes)});
}

void SendLog::Acknowledge(uint64_t ack) {
  while (!entries_.empty() && entries_.front().last_sequence <= ack) {
    bytes_ -= entries_.front().bytes.size();
    entries_.pop_front();
  }
}

std::string SendLog::TakeOldest() {
  std::string bytes = std::move(entries_.front().bytes);
  entries_.pop_front();
  bytes_ -= bytes.size();
  return bytes;
}

}  // namespace protocol
}  // namespace penstock
