// Tests listeners of the engine, in front of an inner engine that the test
// controls.

#include <netinet/in.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "grpc/event_engine/memory_allocator.h"
#include "grpc/impl/channel_arg_names.h"
#include "gtest/gtest.h"
#include "transport/event_engine/engine.h"
#include "transport/event_engine/meeting/call.h"
#include "transport/event_engine/meeting/tcp_address.h"

namespace penstock {
namespace event_engine {
namespace {

using grpc_event_engine::experimental::EndpointConfig;
using grpc_event_engine::experimental::EventEngine;
using grpc_event_engine::experimental::MemoryAllocator;
using grpc_event_engine::experimental::MemoryAllocatorFactory;
using grpc_event_engine::experimental::SliceBuffer;

EventEngine::ResolvedAddress Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return EventEngine::ResolvedAddress(reinterpret_cast<sockaddr*>(&address),
                                      sizeof address);
}

TcpAddress TcpAt(int port) {
  const EventEngine::ResolvedAddress address = Loopback(port);
  return *TcpAddress::Of(address.address(), address.size());
}

// A TCP connection on which nothing happens.
class QuietEndpoint final : public EventEngine::Endpoint {
 public:
  QuietEndpoint(int local, int peer)
      : local_(Loopback(local)), peer_(Loopback(peer)) {}

  bool Read(absl::AnyInvocable<void(absl::Status)> on_read, SliceBuffer*,
            ReadArgs) override {
    on_read_ = std::move(on_read);
    return false;
  }
  bool Write(absl::AnyInvocable<void(absl::Status)>, SliceBuffer*,
             WriteArgs) override {
    return true;
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
  const EventEngine::ResolvedAddress local_;
  const EventEngine::ResolvedAddress peer_;
  absl::AnyInvocable<void(absl::Status)> on_read_;
};

// An engine that makes one listener, whose functions the test calls.
class InnerEngine final : public EventEngine {
 public:
  class InnerListener final : public Listener {
   public:
    absl::StatusOr<int> Bind(const ResolvedAddress&) override { return port; }
    absl::Status Start() override { return absl::OkStatus(); }
    int port = 0;
  };

  absl::StatusOr<std::unique_ptr<Listener>> CreateListener(
      Listener::AcceptCallback on_accept,
      absl::AnyInvocable<void(absl::Status)> on_shutdown, const EndpointConfig&,
      std::unique_ptr<MemoryAllocatorFactory>) override {
    accept = std::move(on_accept);
    shut_down = std::move(on_shutdown);
    auto listener = std::make_unique<InnerListener>();
    listener->port = port;
    return listener;
  }
  ConnectionHandle Connect(OnConnectCallback, const ResolvedAddress&,
                           const EndpointConfig&, MemoryAllocator,
                           Duration) override {
    return ConnectionHandle::kInvalid;
  }
  bool CancelConnect(ConnectionHandle) override { return false; }
  bool IsWorkerThread() override { return false; }
  absl::StatusOr<std::unique_ptr<DNSResolver>> GetDNSResolver(
      const DNSResolver::ResolverOptions&) override {
    return absl::UnimplementedError("no names");
  }
  void Run(Closure*) override {}
  void Run(absl::AnyInvocable<void()>) override {}
  TaskHandle RunAfter(Duration, Closure*) override {
    return TaskHandle::kInvalid;
  }
  TaskHandle RunAfter(Duration, absl::AnyInvocable<void()>) override {
    return TaskHandle::kInvalid;
  }
  bool Cancel(TaskHandle) override { return false; }

  // The listener's port. The names of UNIX sockets are derived from it. No TCP
  // socket uses this port.
  const int port = 1 + getpid() % 60000;
  Listener::AcceptCallback accept;
  absl::AnyInvocable<void(absl::Status)> shut_down;
};

class RequireConfig final : public EndpointConfig {
 public:
  RequireConfig() {
    Settings settings;
    settings.policy = Policy::kRequire;
    number_ = InternSettings(settings);
  }
  std::optional<int> GetInt(absl::string_view key) const override {
    if (key != kSettingsArgument) return std::nullopt;
    return number_;
  }
  std::optional<absl::string_view> GetString(absl::string_view) const override {
    return std::nullopt;
  }
  // Makes the inner engine create the sockets, as for a program with a mutator.
  void* GetVoidPointer(absl::string_view key) const override {
    static int mutator = 0;
    return key == GRPC_ARG_SOCKET_MUTATOR ? &mutator : nullptr;
  }

 private:
  int number_ = 0;
};

// Ends a listener that is still deciding about a client. The shutdown must be
// reported after the decision, because gRPC then frees the objects that its
// accept function uses.
TEST(ListenerTest, ShutDownWaitsForAClientThatIsBeingDecidedOn) {
  absl::StatusOr<Crew*> crew = Crew::Get(progress::PollingMode::kEvent);
  ASSERT_TRUE(crew.ok()) << crew.status();
  auto inner = std::make_shared<InnerEngine>();
  auto engine = std::make_shared<Engine>(inner, *crew);
  bool accepted = false;
  absl::Notification shut_down;
  auto listener = engine->CreateListener(
      [&](std::unique_ptr<EventEngine::Endpoint>, MemoryAllocator) {
        EXPECT_FALSE(shut_down.HasBeenNotified());
        accepted = true;
      },
      [&](const absl::Status&) { shut_down.Notify(); }, RequireConfig(),
      nullptr);
  ASSERT_TRUE(listener.ok()) << listener.status();
  ASSERT_TRUE((*listener)->Bind(Loopback(0)).ok());

  const int client_port = inner->port + 1;
  inner->accept(std::make_unique<QuietEndpoint>(inner->port, client_port),
                MemoryAllocator());
  listener->reset();
  std::exchange(inner->shut_down, nullptr)(absl::OkStatus());
  EXPECT_FALSE(shut_down.HasBeenNotified()) << "the client may come";

  std::unique_ptr<fabric::Endpoint> path;
  absl::Notification met;
  fabric::shm::Options options;
  options.other_users = false;
  auto call = MeetingCall::Start(
      TcpAt(client_port), TcpAt(inner->port), options,
      [&](absl::StatusOr<std::unique_ptr<fabric::Endpoint>> answer) {
        if (answer.ok()) path = *std::move(answer);
        met.Notify();
      });
  met.WaitForNotification();
  shut_down.WaitForNotification();
  EXPECT_EQ(accepted, path != nullptr);
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
