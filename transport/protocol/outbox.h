// The queue of frames to send. Numbers the frames, cuts long ones into
// fragments, and packs them into batches. Each batch is sent as one packet.

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

// Sequenced frames that are sent as one packet.
struct Batch {
  std::string bytes;
  uint64_t last_sequence = 0;  // of its last frame
  uint64_t ack = 0;            // the acknowledgement in that frame
  size_t answer_bytes = 0;     // the part of `bytes` that answers the peer
};

// Returns the size of `payload_bytes` in frames, including all headers.
size_t FramedBytes(size_t payload_bytes);

// Queues frames for one session. Not thread-safe.
class Outbox {
 public:
  // Makes an empty outbox. A batch holds up to `max_batch_bytes`, at least one
  // frame. `buffers` provides the memory of batches, and must outlive the
  // outbox.
  Outbox(size_t max_batch_bytes, base::BufferPool* buffers)
      : max_batch_(max_batch_bytes), buffers_(buffers) {}

  // Adds a sequenced frame, or several if `payload` is long. The caller sets
  // type, flags, stream and aux of `header`. `ack` is the last sequence number
  // that has been received in order. Returns the last sequence number used.
  uint64_t Add(wire::FrameHeader header, absl::string_view payload,
               uint64_t ack, bool is_answer = false);

  bool empty() const { return batches_.empty(); }
  const Batch& front() const { return batches_.front(); }
  // Returns the bytes of the oldest batch. The sender may move them out, and
  // then calls Pop().
  std::string* mutable_front_bytes() { return &batches_.front().bytes; }
  Batch Pop() { return batches_.pop_front(); }

 private:
  // Adds one fragment. `to_come` is the number of bytes left of the whole
  // payload, including `payload`.
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
