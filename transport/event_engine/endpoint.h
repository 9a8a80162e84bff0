// The endpoint that gRPC sees.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_ENDPOINT_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "grpc/event_engine/event_engine.h"
#include "transport/event_engine/movable_connection.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace event_engine {

// A handle of a MovableConnection. The destructor closes the connection. Hides
// the TCP endpoint's extensions, which give access to the socket: the socket
// carries only some of the bytes.
//
// Does nothing in the child of a fork, because the connection is the parent's.
class Endpoint final
    : public grpc_event_engine::experimental::EventEngine::Endpoint {
 public:
  using EventEngine = grpc_event_engine::experimental::EventEngine;

  Endpoint(std::shared_ptr<MovableConnection> connection,
           const EventEngine::ResolvedAddress& local,
           const EventEngine::ResolvedAddress& peer)
      : connection_(std::move(connection)), local_(local), peer_(peer) {}
  ~Endpoint() override {
    if (!IsForeign()) connection_->Close();
  }

  bool Read(absl::AnyInvocable<void(absl::Status)> on_read,
            grpc_event_engine::experimental::SliceBuffer* buffer,
            ReadArgs args) override {
    return !IsForeign() &&
           connection_->Read(std::move(on_read), buffer, std::move(args));
  }
  bool Write(absl::AnyInvocable<void(absl::Status)> on_writable,
             grpc_event_engine::experimental::SliceBuffer* data,
             WriteArgs args) override {
    return !IsForeign() &&
           connection_->Write(std::move(on_writable), data, std::move(args));
  }
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
  bool IsForeign() const { return fork_count_ != progress::ForkCount(); }

  const uint32_t fork_count_ = progress::ForkCount();
  const std::shared_ptr<MovableConnection> connection_;
  const EventEngine::ResolvedAddress local_;
  const EventEngine::ResolvedAddress peer_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_ENDPOINT_H_
