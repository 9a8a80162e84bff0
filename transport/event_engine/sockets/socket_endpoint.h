// An endpoint of gRPC over a TCP socket.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_SOCKET_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_SOCKET_ENDPOINT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "grpc/event_engine/event_engine.h"
#include "transport/base/unique_fd.h"
#include "transport/event_engine/threads/crew.h"

namespace penstock {
namespace event_engine {

// Reads and writes immediately if the socket allows. Otherwise the crew's
// leader, which polls all sockets while it spins, continues the operation, so
// that no thread of gRPC's own engine must be woken. Thread-safe.
class SocketEndpoint final
    : public grpc_event_engine::experimental::EventEngine::Endpoint {
 public:
  using EventEngine = grpc_event_engine::experimental::EventEngine;
  using SliceBuffer = grpc_event_engine::experimental::SliceBuffer;
  using Callback = absl::AnyInvocable<void(absl::Status)>;

  // Makes an endpoint of a connected, non-blocking socket. Fails if the socket
  // cannot be watched. Returns UNAVAILABLE if the socket has just lost its
  // peer.
  static absl::StatusOr<std::unique_ptr<EventEngine::Endpoint>> Create(
      base::UniqueFd socket, Crew* crew);
  ~SocketEndpoint() override;

  bool Read(Callback on_read, SliceBuffer* buffer, ReadArgs args) override;
  bool Write(Callback on_written, SliceBuffer* data, WriteArgs args) override;
  const EventEngine::ResolvedAddress& GetPeerAddress() const override {
    return peer_;
  }
  const EventEngine::ResolvedAddress& GetLocalAddress() const override {
    return local_;
  }
  std::shared_ptr<TelemetryInfo> GetTelemetryInfo() const override {
    return nullptr;
  }

 private:
  class Socket;

  SocketEndpoint(std::shared_ptr<Socket> socket,
                 const EventEngine::ResolvedAddress& local,
                 const EventEngine::ResolvedAddress& peer);

  const std::shared_ptr<Socket> socket_;
  const EventEngine::ResolvedAddress local_;
  const EventEngine::ResolvedAddress peer_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_SOCKET_ENDPOINT_H_
