// A non-blocking TCP socket as a byte stream.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_SOCKET_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/tcp/byte_stream.h"
#include "transport/fabric/tcp/endpoint.h"

namespace penstock {
namespace fabric {
namespace tcp {

// The socket of one connection. Thread-compatible.
class Socket final : public ByteStream {
 public:
  explicit Socket(base::UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }

  // Receives once for `endpoint`, as tcp::Receive() does.
  absl::StatusOr<size_t> Receive(Endpoint* endpoint);
  // Receives once, and drops the bytes. Returns as Receive() does.
  absl::StatusOr<size_t> Discard();

  // Begins a write of `pieces`, which Pump() sends.
  void Write(std::vector<memory::Bytes> pieces) override;
  // Returns true while a write is in flight.
  bool writing() const { return writing_; }
  // Sends as many bytes of the current write as the socket accepts. Returns
  // true if the write is complete.
  absl::StatusOr<bool> Pump();

  // Closes the socket, and releases unsent pieces. Call no function afterwards.
  void Close();

 private:
  void Advance(size_t sent);

  base::UniqueFd fd_;
  bool writing_ = false;
  std::vector<memory::Bytes> pieces_;
  size_t next_ = 0;    // index in pieces_
  size_t offset_ = 0;  // offset in pieces_[next_]
};

// Makes the socket send small writes immediately (TCP_NODELAY).
void SetNoDelay(int fd);

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_SOCKET_H_
