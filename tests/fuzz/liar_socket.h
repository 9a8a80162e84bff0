// The socket for the set-up of shared memory. A fuzz target sends false
// messages on the socket.

#ifndef PENSTOCK_TESTS_FUZZ_LIAR_SOCKET_H_
#define PENSTOCK_TESTS_FUZZ_LIAR_SOCKET_H_

#include <cstdint>
#include <string>
#include <utility>

#include "tests/fuzz/input.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/address.h"

namespace penstock {
namespace fuzz {

// Sends any bytes, with any descriptor. A failure to send is one more kind of
// input.
class LiarSocket {
 public:
  // The size of the ring in the right descriptor, kControl.
  static constexpr uint32_t kRingBytes = 128 * 1024;

  // The descriptors that a message may have.
  enum Descriptor : uint8_t {
    kNothing,
    kControl,   // memory as the set-up expects
    kSmall,     // too little memory
    kUnsealed,  // memory that may shrink
    kEvent,     // an eventfd
    kDescriptors
  };
  // Takes a choice of descriptor from the input. Returns -1 for kNothing.
  static int AnyMemory(Input* input);

  // Return an invalid socket on failure. Accept() waits for 5 ms at most.
  static LiarSocket Connect(const fabric::shm::SocketAddress& address);
  static LiarSocket Accept(const base::UniqueFd& listening);

  bool valid() const { return fd_.valid(); }
  void Send(const std::string& bytes, int descriptor);
  void Reset() { fd_.Reset(); }

 private:
  explicit LiarSocket(base::UniqueFd fd) : fd_(std::move(fd)) {}

  base::UniqueFd fd_;
};

}  // namespace fuzz
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FUZZ_LIAR_SOCKET_H_
