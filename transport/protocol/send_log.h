// What was sent over a path that may be lost, until the peer has it.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_SEND_LOG_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_SEND_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/base/buffer_pool.h"
#include "transport/base/fifo.h"

namespace penstock {
namespace protocol {

// Where many wait, short ones are joined to those before them, so that a stream
// of them does not take memory for each.
class SendLog {
 public:
  static constexpr size_t kMaxApart = base::BufferPool::kMaxBuffers;
  static constexpr size_t kMaxJoinedBytes = 4 * 1024;

  // Gives the memory of what it drops to `buffers`, which outlives the log.
  explicit SendLog(base::BufferPool* buffers) : buffers_(buffers) {}

  // Sequence numbers only ever grow from call to call.
  void Add(uint64_t last_sequence, std::string bytes);
  // Drops what the peer has received in full, joined messages together.
  void Acknowledge(uint64_t ack);

  size_t bytes() const { return bytes_; }
  bool empty() const { return entries_.empty(); }
  // Takes the oldest messages out, to be sent again as one.
  std::string TakeOldest();

 private:
  struct Entry {
    uint64_t last_sequence;
    std::string bytes;
  };
  base::BufferPool* const buffers_;
  base::Fifo<Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_SEND_LOG_H_
