// Stores packets of a fast path until the peer acknowledges them. If the path
// is lost, the packets are sent again over the lifeline.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_SEND_LOG_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_SEND_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/base/buffer_pool.h"
#include "transport/base/fifo.h"

namespace penstock {
namespace protocol {

// A log of the sent packets that the peer has not acknowledged. Above kMaxApart
// packets, appends a short packet to the previous packet, so that a stream of
// short packets does not need a buffer for each packet. Not thread-safe.
class SendLog {
 public:
  static constexpr size_t kMaxApart = base::BufferPool::kMaxBuffers;
  static constexpr size_t kMaxJoinedBytes = 4 * 1024;

  // Returns the memory of dropped packets to `buffers`, which must outlive the
  // log.
  explicit SendLog(base::BufferPool* buffers) : buffers_(buffers) {}

  // Adds a packet. `last_sequence` must increase.
  void Add(uint64_t last_sequence, std::string bytes);
  // Drops packets of which the peer has received all frames. Joined packets are
  // dropped together.
  void Acknowledge(uint64_t ack);

  size_t bytes() const { return bytes_; }
  bool empty() const { return entries_.empty(); }
  // Removes the oldest packet, or several joined packets, and returns the bytes
  // to send again as one packet. Requires !empty().
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
