// The event engine that gRPC uses.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_ENGINE_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "grpc/event_engine/event_engine.h"
#include "transport/event_engine/sockets/dialer.h"
#include "transport/event_engine/threads/crew.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace event_engine {

// The name of the channel argument that holds a number from InternSettings().
// Channels and servers without this argument get gRPC's own endpoints.
constexpr char kSettingsArgument[] = "penstock.settings";

// Returns a positive number for `settings`. Equal settings have equal numbers,
// for the life of the process. Thread-safe.
int InternSettings(const Settings& settings);

// Makes Engine the default engine of gRPC, once. Fails if the engine cannot
// start. Existing channels and servers keep their engine. Thread-safe.
absl::Status InstallEngine();

// An engine around an engine of gRPC, which resolves names and runs timers.
// This engine runs closures on the crew. The crew also polls the TCP sockets of
// channels and servers that use Penstock. Hides the inner engine's extensions,
// because gRPC would use them to create listeners that bypass this engine.
// Thread-safe.
class Engine final : public grpc_event_engine::experimental::EventEngine {
 public:
  Engine(std::shared_ptr<EventEngine> inner, Crew* crew);
  ~Engine() override;

  absl::StatusOr<std::unique_ptr<Listener>> CreateListener(
      Listener::AcceptCallback on_accept,
      absl::AnyInvocable<void(absl::Status)> on_shutdown,
      const grpc_event_engine::experimental::EndpointConfig& config,
      std::unique_ptr<grpc_event_engine::experimental::MemoryAllocatorFactory>
          memory_allocator_factory) override;
  ConnectionHandle Connect(
      OnConnectCallback on_connect, const ResolvedAddress& addr,
      const grpc_event_engine::experimental::EndpointConfig& args,
      grpc_event_engine::experimental::MemoryAllocator memory_allocator,
      Duration timeout) override;
  bool CancelConnect(ConnectionHandle handle) override;
  bool IsWorkerThread() override;
  absl::StatusOr<std::unique_ptr<DNSResolver>> GetDNSResolver(
      const DNSResolver::ResolverOptions& options) override;
  void Run(Closure* closure) override;
  void Run(absl::AnyInvocable<void()> closure) override;
  TaskHandle RunAfter(Duration when, Closure* closure) override;
  TaskHandle RunAfter(Duration when,
                      absl::AnyInvocable<void()> closure) override;
  bool Cancel(TaskHandle handle) override;

 private:
  const std::shared_ptr<EventEngine> inner_;
  Crew* const crew_;
  Dialer* const dialer_;  // never deleted, because attempts may be in progress
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_ENGINE_H_
