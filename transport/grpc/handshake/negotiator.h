// The common part of both sides of the negotiation. Reads and writes on the
// connection. Finishes once, and may be shut down at any time.

#ifndef PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_NEGOTIATOR_H_
#define PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_NEGOTIATOR_H_

#include <functional>
#include <string>

#include "src/core/lib/gprpp/sync.h"
#include "src/core/lib/slice/slice_buffer.h"
#include "src/core/lib/transport/handshaker.h"
#include "transport/base/unique_fd.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/transport.h"

namespace penstock {
namespace core {

// A handshaker that runs after the security handshake. Gives the connection to
// a Penstock transport, or leaves the connection and all received bytes to
// HTTP/2. Functions named Locked are called with mu_ held.
class Negotiator : public grpc_core::Handshaker {
 public:
  void Shutdown(grpc_error_handle why) override;
  void DoHandshake(grpc_tcp_server_acceptor* acceptor, grpc_closure* done,
                   grpc_core::HandshakerArgs* args) override;

 protected:
  Negotiator();

  virtual void BeginLocked() = 0;
  // Called after ReadLocked(), when received() has new bytes.
  virtual void OnReadLocked() = 0;
  // Called after WriteLocked(), when all bytes were written.
  virtual void OnWrittenLocked() = 0;

  void ReadLocked();
  void WriteLocked(const std::string& bytes);
  // Finishes the handshake. HTTP/2 continues with the bytes `received`.
  void LeaveToHttp2Locked(const std::string& received);
  // Gives the connection to a new transport. The caller starts the transport,
  // and owns the first reference to it. The first `consumed` bytes of
  // received() belong to the negotiation. The transport gets the rest.
  Transport* TakeOverLocked(const Transport::Config& config, size_t consumed,
                            Transport::Settled settled);
  // Passes the connection's socket to `taker`, which is called later without
  // locks, and finishes the handshake. Requires an endpoint over plain TCP,
  // with no read and no write in flight.
  void GiveSocketLocked(std::function<void(base::UniqueFd)> taker);
  // Finishes the handshake. Closes the connection if there is an error and no
  // transport. Later calls do nothing.
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
  Transport* transport_ = nullptr;  // holds a reference, once taken over
  std::string received_;
  grpc_core::SliceBuffer write_buffer_;
  // The closures of reads and writes. Inner closures may run under mu_; see
  // EndpointStream.
  grpc_closure read_inner_, read_outer_, write_inner_, write_outer_;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_HANDSHAKE_NEGOTIATOR_H_
