// Accepts TCP connections for gRPC.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_SOCKET_LISTENER_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_SOCKET_LISTENER_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "grpc/event_engine/event_engine.h"
#include "grpc/event_engine/memory_allocator.h"
#include "transport/base/unique_fd.h"
#include "transport/event_engine/sockets/socket_options.h"
#include "transport/event_engine/threads/crew.h"
#include "transport/progress/acceptor.h"

namespace penstock {
namespace event_engine {

// Listens at the TCP addresses of one gRPC listener, as gRPC's own engine does.
// Used by one thread at a time.
class SocketListener {
 public:
  using EventEngine = grpc_event_engine::experimental::EventEngine;
  using MemoryAllocator = grpc_event_engine::experimental::MemoryAllocator;
  using MemoryAllocatorFactory =
      grpc_event_engine::experimental::MemoryAllocatorFactory;
  // Receives an accepted connection, and gRPC's memory allocator for it. Runs
  // on the crew.
  using Accept = std::function<void(std::unique_ptr<EventEngine::Endpoint>,
                                    MemoryAllocator)>;

  SocketListener(const SocketOptions& options, Crew* crew,
                 std::shared_ptr<MemoryAllocatorFactory> memory, Accept accept);
  // Stops accepting. A call of `accept` may still be running.
  ~SocketListener();

  // Listens at `address`, and returns the port. Port 0 means the port of an
  // earlier call, or else any free port. At a wildcard address, listens for
  // IPv4 and IPv6 if the system has both.
  absl::StatusOr<int> Bind(const EventEngine::ResolvedAddress& address);
  // Begins to accept.
  absl::Status Start();

 private:
  const SocketOptions options_;
  Crew* const crew_;
  const std::shared_ptr<MemoryAllocatorFactory> memory_;
  const Accept accept_;
  int port_ = 0;
  std::vector<base::UniqueFd> bound_;  // until Start()
  struct Listening {
    int fd;  // open until Stop()
    std::shared_ptr<progress::Acceptor> acceptor;
  };
  std::vector<Listening> listening_;  // since Start()
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_SOCKET_LISTENER_H_
