// A TCP socket that does not block: the byte stream under a session's lifeline.

#ifndef PENSTOCK_TRANSPORT_RPC_SOCKET_H_
#define PENSTOCK_TRANSPORT_RPC_SOCKET_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/tcp/byte_stream.h"

namespace penstock {
namespace rpc {

// Thread-compatible.
class Socket final : public fabric::tcp::ByteStream {
 public:
  explicit Socket(base::UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }

  // Fills the beginning of `buffer` with what has come, and returns it. Empty:
  // nothing is there now. Returns UNAVAILABLE at the end of the stream.
  absl::StatusOr<absl::Span<const uint8_t>> Read(absl::Span<uint8_t> buffer);

  // Takes the pieces, which Pump() sends.
  void Write(std::vector<memory::Bytes> pieces) override;
  // Returns true while a write is under way.
  bool writing() const { return writing_; }
  // Sends what the socket has room for. Returns whether that ended the write.
  absl::StatusOr<bool> Pump();

  // Closes it, and lets go of what was to be sent. Nothing may be called after.
  void Close();

 private:
  void Advance(size_t sent);

  base::UniqueFd fd_;
  bool writing_ = false;
  std::vector<memory::Bytes> pieces_;
  size_t next_ = 0;    // of pieces_
  size_t offset_ = 0;  // in that piece
};

// Makes the socket send small writes at once.
void SetNoDelay(int fd);

// "10.0.0.1:5000", for people.
std::string AddressText(const sockaddr_storage& address);

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_SOCKET_H_
