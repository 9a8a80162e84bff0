// gRPC's connection (TCP, or TLS on it) as the byte stream of the tcp fabric.

#ifndef PENSTOCK_TRANSPORT_GRPC_ENDPOINT_STREAM_H_
#define PENSTOCK_TRANSPORT_GRPC_ENDPOINT_STREAM_H_

#include <vector>

#include "src/core/lib/iomgr/endpoint.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "transport/fabric/tcp/byte_stream.h"
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// What the owner does about the stream. Called from an ExecCtx, without locks.
class EndpointStreamEvents {
 public:
  virtual ~EndpointStreamEvents() = default;
  // Keep yourself: a read or a write begins. Its OnRead() or OnWritten() is to
  // give the reference back.
  virtual void Ref() = 0;
  virtual void OnRead(grpc_error_handle error) = 0;
  virtual void OnWritten(grpc_error_handle error) = 0;
};

// One read and one write may be under way at once.
class EndpointStream : public fabric::tcp::ByteStream {
 public:
  // Takes the endpoint.
  EndpointStream(grpc_endpoint* endpoint, EndpointStreamEvents* events);
  ~EndpointStream() override;

  // OnRead() follows, with the bytes in read_buffer().
  void Read();
  grpc_core::SliceBuffer* read_buffer() { return &read_buffer_; }
  // OnWritten() follows.
  void Write(std::vector<memory::Bytes> pieces) override;
  // Ends what is under way with an error.
  void Shutdown(grpc_error_handle why);

  grpc_endpoint* endpoint() const { return endpoint_; }

 private:
  grpc_endpoint* const endpoint_;
  EndpointStreamEvents* const events_;
  grpc_core::SliceBuffer read_buffer_;
  grpc_core::SliceBuffer write_buffer_;
  bool shut_down_ = false;
  // gRPC may run a closure within the call that it was given to, under our
  // owner's lock: the inner one only schedules the outer one.
  grpc_closure read_inner_, read_outer_, write_inner_, write_outer_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_ENDPOINT_STREAM_H_
