// What was sent over a path that may be lost, until the peer has it.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_SEND_LOG_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_SEND_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace penstock {
namespace protocol {

class SendLog {
 public:
  // Sequence numbers only ever grow from call to call.
  void Add(uint64_t last_sequence, std::string bytes);
  // Drops what the peer has received in full.
  void Acknowledge(uint64_t ack);

  size_t bytes() const { return bytes_; }
  bool empty() const { return entries_.empty(); }
  // Takes the oldest message out, to be sent again.
  std::string TakeOldest();

 private:
  struct Entry {
    uint64_t last_sequence;
    std::string bytes;
  };
  std::deque<Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_SEND_LOG_H_
