// What the two sides of the negotiation have in common: reading and writing on
// the connection, ending once, being shut down at any moment.

#ifndef PENSTOCK_TRANSPORT_GRPC_NEGOTIATOR_H_
#define PENSTOCK_TRANSPORT_GRPC_NEGOTIATOR_H_

#include <string>

#include "src/core/lib/gprpp/sync.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "src/core/lib/transport/handshaker.h"
#include "transport/grpc/grpc_abi.h"
#include "transport/grpc/transport.h"

namespace penstock {
namespace core {

// A handshaker that runs after security's. It either takes the connection for
// a Penstock transport or leaves it, with all bytes read so far, to HTTP/2.
// The members named Locked hold mu_.
class Negotiator : public grpc_core::Handshaker {
 public:
  void Shutdown(grpc_error_handle why) override;
  void DoHandshake(grpc_tcp_server_acceptor* acceptor, grpc_closure* done,
                   grpc_core::HandshakerArgs* args) override;

 protected:
  Negotiator();

  virtual void BeginLocked() = 0;
  // More bytes are in received().
  virtual void OnReadLocked() = 0;
  virtual void OnWrittenLocked() = 0;

  void ReadLocked();
  void WriteLocked(const std::string& bytes);
  // HTTP/2 goes on, with `received`.
  void LeaveToHttp2Locked(const std::string& received);
  // The connection now belongs to a new transport, which is not started;
  // `consumed` bytes of received() were the negotiation. The caller has its
  // first reference.
  Transport* TakeOverLocked(const Transport::Config& config, size_t consumed,
                            Transport::Settled settled);
  // Ends the handshake; nothing may follow.
  void FinishLocked(grpc_error_handle error);

  const std::string& received() const { return received_; }
  grpc_core::HandshakerArgs* args() { return args_; }
  bool finished() const { return done_ == nullptr; }
  grpc_core::Mutex* mu() { return &mu_; }

 private:
  static void OnRead(void* self, grpc_error_handle error);
  static void OnWritten(void* self, grpc_error_handle error);
  void OnIo(grpc_error_handle error, bool read);

  grpc_core::Mutex mu_;
  bool shut_down_ = false;
  grpc_error_handle shutdown_error_;
  grpc_core::HandshakerArgs* args_ = nullptr;
  grpc_closure* done_ = nullptr;
  Transport* transport_ = nullptr;  // counted, once taken over
  std::string received_;
  grpc_core::SliceBuffer write_buffer_;
  // The inner closures may run under mu_, see EndpointStream.
  grpc_closure read_inner_, read_outer_, write_inner_, write_outer_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_NEGOTIATOR_H_
