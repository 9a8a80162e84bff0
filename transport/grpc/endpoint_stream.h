// Adapts a gRPC connection (TCP, or TLS over TCP) to the byte stream of the tcp
// fabric.

#ifndef PENSTOCK_TRANSPORT_GRPC_ENDPOINT_STREAM_H_
#define PENSTOCK_TRANSPORT_GRPC_ENDPOINT_STREAM_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "src/core/lib/iomgr/endpoint.h"
#include "src/core/lib/iomgr/ev_posix.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/fabric/tcp/byte_stream.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/write_burst.h"

namespace penstock {
namespace core {

// Events of a stream, for its owner.
class EndpointStreamEvents {
 public:
  virtual ~EndpointStreamEvents() = default;
  // Called when a read or a write begins. Adds a reference to the owner, which
  // the owner releases in the next OnRead() or OnWritten().
  virtual void Hold() = 0;
  // Makes a thread call Endpoint::WriteQueued(false) soon. Returns false if no
  // thread can do so. Called under the owner's lock.
  virtual bool WriteLater() = 0;
  // Handle the end of a read, and of a write. Called from an ExecCtx, without
  // locks. If another thread holds the owner's lock and `may_block` is false,
  // return false and do nothing. The stream then calls again with `may_block`,
  // from a thread of gRPC's executor. A thread that polls for many connections
  // thus does not wait for the lock of one of them.
  virtual bool OnRead(grpc_error_handle error, bool may_block) = 0;
  virtual bool OnWritten(grpc_error_handle error, bool may_block) = 0;
};

// A byte stream over a gRPC endpoint. At most one read and one write may be in
// flight. Call Read(), Write() and Shutdown() in an ExecCtx, under the owner's
// lock.
class EndpointStream : public fabric::tcp::ByteStream {
 public:
  // Takes ownership of `endpoint`. `events` outlives the stream.
  EndpointStream(grpc_endpoint* endpoint, EndpointStreamEvents* events);
  ~EndpointStream() override;

  // Begins a read, which ends with one OnRead(). The bytes are then in
  // read_buffer(), or still in the socket if receives_directly(). OnRead() runs
  // in a thread of gRPC's executor if the peer keeps the socket full. Otherwise
  // the peer could hold this thread for as long as it sends.
  void Read();
  grpc_core::SliceBuffer* read_buffer() { return &read_buffer_; }
  // Begins a write. OnWritten() follows once.
  void Write(std::vector<memory::Bytes> pieces) override;
  // Holds short writes of a burst back, until there are enough for one system
  // call.
  bool Holds(size_t bytes, uint64_t received) override;
  // Fails the read and the write in flight, and all later ones. Does nothing in
  // a forked child, because the connection belongs to the parent.
  void Shutdown(grpc_error_handle why);
  bool is_shut_down() const { return shut_down_; }

  // Returns true if the stream receives directly from its socket, over plain
  // TCP. Over TLS gRPC's endpoint reads into slices of its own, from which a
  // large message is copied.
  bool receives_directly() const { return socket_ != nullptr; }
  // Returns the descriptor from which the stream receives directly.
  int input_fd() const { return grpc_fd_wrapped_fd(socket_); }
  // Records that a read has ended, and that the socket may have input. Call in
  // OnRead().
  void EndRead() { may_have_input_ = true; }
  // Receives once, as fabric::tcp::Receive() does. Requires
  // receives_directly().
  absl::StatusOr<size_t> Receive(fabric::tcp::Endpoint* lifeline);

  grpc_endpoint* endpoint() const { return endpoint_; }

 private:
  bool IsForeign() const;

  grpc_endpoint* const endpoint_;
  EndpointStreamEvents* const events_;
  const uint32_t fork_count_;
  // The endpoint's socket if the stream receives directly. Null if gRPC's
  // endpoint reads.
  grpc_fd* const socket_;
  // False once Receive() has emptied the socket, until a read ends.
  bool may_have_input_ = true;
  // Counts the reads since the socket was last empty.
  int reads_in_a_row_ = 0;
  WriteBurst burst_;
  grpc_core::SliceBuffer read_buffer_;
  grpc_core::SliceBuffer write_buffer_;
  bool shut_down_ = false;
  // The closures of a read and a write. gRPC may run a closure within the call
  // to which it is passed, under the owner's lock. Therefore an inner closure
  // only schedules its outer closure.
  grpc_closure read_inner_, read_outer_, write_inner_, write_outer_;
  // Wait for the owner's lock, in the executor.
  grpc_closure read_blocking_, write_blocking_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_ENDPOINT_STREAM_H_
