// One direction of a connection in memory, which the test moves explicitly.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_TCP_PIPE_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_TCP_PIPE_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "transport/fabric/tcp/byte_stream.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace tcp {

// Holds the current write until its bytes are taken. Fails the test if a call
// breaks the contract of byte_stream.h.
class Pipe : public ByteStream {
 public:
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();

  void Write(std::vector<memory::Bytes> pieces) override {
    EXPECT_FALSE(writing_) << "two writes at a time";
    EXPECT_FALSE(pieces.empty()) << "a write of nothing";
    writing_ = true;
    ++writes_;
    for (memory::Bytes& piece : pieces) {
      EXPECT_GT(piece.size, 0u) << "a piece of nothing";
      left_.push_back(std::move(piece));
    }
  }

  bool Holds(size_t bytes, uint64_t received) override {
    EXPECT_GT(bytes, 0u);
    received_ = received;
    return holds;
  }

  // True if the stream holds writes back.
  bool holds = false;
  // Returns the packets that the endpoint had received at the last Holds().
  uint64_t received() const { return received_; }

  // Returns true between Write() and Finish().
  bool writing() const { return writing_; }
  int writes() const { return writes_; }
  // Returns the bytes of the current write that were not taken yet.
  const std::deque<memory::Bytes>& left() const { return left_; }

  // Takes the next bytes, at most `size`.
  std::string Take(size_t size = kAll) {
    std::string taken;
    while (size > 0 && !left_.empty()) {
      const absl::Span<const uint8_t> front = left_.front().span();
      const size_t part = std::min(size, front.size());
      taken.append(reinterpret_cast<const char*>(front.data()), part);
      Drop(part);
      size -= part;
    }
    return taken;
  }
  // Drops the first `size` bytes of the first piece.
  void Drop(size_t size) {
    memory::Bytes& front = left_.front();
    front = front.Part(size, front.size - size);
    if (front.size == 0) left_.pop_front();
  }
  // Ends the write; remaining bytes are lost. Does not notify the endpoint.
  void Finish() {
    left_.clear();
    writing_ = false;
  }

 private:
  bool writing_ = false;
  int writes_ = 0;
  uint64_t received_ = 0;
  std::deque<memory::Bytes> left_;
};

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_TCP_PIPE_H_
