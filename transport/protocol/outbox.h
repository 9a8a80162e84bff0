// Numbers frames, cuts long ones into fragments and packs those that wait
// together into one message, so that they leave in one send.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_OUTBOX_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "transport/base/buffer_pool.h"
#include "transport/base/fifo.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace protocol {

// Frames on their way out, packed.
struct Batch {
  std::string bytes;
  uint64_t last_sequence = 0;  // of the last sequenced frame in it
  uint64_t ack = 0;            // what that frame acknowledges
  size_t answer_bytes = 0;     // of `bytes`: frames that answer the peer's
};

// What a frame with so much payload takes, as several if it is long.
size_t FramedBytes(size_t payload_bytes);

class Outbox {
 public:
  // No batch grows above this; it is at least one frame. Their memory is from
  // `buffers`, which outlives the outbox.
  Outbox(size_t max_batch_bytes, base::BufferPool* buffers)
      : max_batch_(max_batch_bytes), buffers_(buffers) {}

  // Adds the sequenced frame that `header` describes (its type, flags, stream
  // and aux; the rest is filled in), as several if `payload` is long. `ack` is
  // what has been received so far. Returns the last sequence number used.
  uint64_t Add(wire::FrameHeader header, absl::string_view payload,
               uint64_t ack, bool is_answer = false);

  bool empty() const { return batches_.empty(); }
  const Batch& front() const { return batches_.front(); }
  // To be taken by who sends it; Pop() follows.
  std::string* mutable_front_bytes() { return &batches_.front().bytes; }
  Batch Pop() { return batches_.pop_front(); }

 private:
  // `to_come` bytes of the frame's payload are left, `payload` among them.
  void AddFragment(const wire::FrameHeader& header, absl::string_view payload,
                   size_t to_come, bool is_answer);

  const size_t max_batch_;
  base::BufferPool* const buffers_;
  uint64_t next_sequence_ = 1;
  base::Fifo<Batch> batches_;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_OUTBOX_H_
