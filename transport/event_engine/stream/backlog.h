// Bytes that have arrived and wait for their consumer.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_BACKLOG_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_BACKLOG_H_

#include <cstddef>
#include <memory>
#include <string>

#include "transport/memory/bytes.h"

namespace penstock {
namespace event_engine {

// A queue of bytes. The memory is proportional to the number of bytes, even if
// a peer sends pieces of one byte: copies adjacent small pieces together. Does
// not copy large pieces, nor a small piece between large ones. Not thread-safe.
class Backlog {
 public:
  // The size up to which a piece is small. The bookkeeping of a larger piece
  // costs little, compared with its bytes.
  static constexpr size_t kSmallBytes = 1024;

  void Append(memory::Bytes bytes);
  size_t size() const { return size_; }
  // Removes and returns all bytes.
  memory::Payload Take();

 private:
  // Moves the small pieces at the end of the queue to whole_.
  void Finish();

  size_t size_ = 0;
  memory::Payload whole_;
  // The end of the queue: either one small piece, or several pieces that were
  // copied together.
  memory::Bytes small_;
  std::shared_ptr<std::string> merged_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_BACKLOG_H_
