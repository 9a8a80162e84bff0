#include "transport/event_engine/engine.h"

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "transport/base/limited_log.h"
#include "transport/base/log.h"
#include "transport/base/mutex.h"
#include "transport/event_engine/introducer.h"
#include "transport/event_engine/sockets/socket_listener.h"
#include "transport/event_engine/sockets/socket_options.h"

namespace penstock {
namespace event_engine {
namespace {

using grpc_event_engine::experimental::EndpointConfig;
using grpc_event_engine::experimental::MemoryAllocator;
using grpc_event_engine::experimental::MemoryAllocatorFactory;

struct AllSettings {
  base::Mutex mu;
  std::deque<Settings> all ABSL_GUARDED_BY(mu);
};

AllSettings* all_settings() {
  static AllSettings* const all = new AllSettings;
  return all;
}

absl::optional<Settings> SettingsOf(const EndpointConfig& config) {
  const auto number = config.GetInt(kSettingsArgument);
  if (!number.has_value()) return absl::nullopt;
  base::MutexLock lock(&all_settings()->mu);
  const size_t index = static_cast<size_t>(*number) - 1;
  if (index >= all_settings()->all.size()) return absl::nullopt;
  return all_settings()->all[index];
}

// The functions that gRPC gave to a listener. gRPC frees the objects that
// `on_accept` uses when `on_shutdown` runs. Therefore each accepted connection
// that may still call Accept() holds a reference, and releasing the last
// reference calls `on_shutdown`.
class Acceptor {
 public:
  Acceptor(EventEngine::Listener::AcceptCallback on_accept,
           absl::AnyInvocable<void(absl::Status)> on_shutdown)
      : on_accept_(std::move(on_accept)),
        on_shutdown_(std::move(on_shutdown)) {}
  ~Acceptor() {
    if (is_shut_down_) on_shutdown_(status_);
  }

  void Accept(absl::StatusOr<std::unique_ptr<EventEngine::Endpoint>> endpoint,
              MemoryAllocator allocator) {
    if (!endpoint.ok()) {
      return base::WarnOfStranger(endpoint.status().message());
    }
    on_accept_(*std::move(endpoint), std::move(allocator));
  }
  // Records that the inner listener accepts no more connections. Call before
  // the inner listener's reference is dropped.
  void ShutDown(absl::Status status) {
    status_ = std::move(status);
    is_shut_down_ = true;
  }

 private:
  EventEngine::Listener::AcceptCallback on_accept_;
  absl::AnyInvocable<void(absl::Status)> on_shutdown_;
  absl::Status status_;
  bool is_shut_down_ = false;
};

// Gives one factory to two engines, although gRPC makes each factory for one
// engine only.
class SharedMemoryFactory final : public MemoryAllocatorFactory {
 public:
  explicit SharedMemoryFactory(std::shared_ptr<MemoryAllocatorFactory> factory)
      : factory_(std::move(factory)) {}
  MemoryAllocator CreateMemoryAllocator(absl::string_view name) override {
    return factory_->CreateMemoryAllocator(name);
  }

 private:
  const std::shared_ptr<MemoryAllocatorFactory> factory_;
};

// Opens a meeting place for each bound TCP address. gRPC's own engine listens
// at other addresses, and at all addresses if there is no `sockets`.
class Listener final : public EventEngine::Listener {
 public:
  Listener(std::unique_ptr<EventEngine::Listener> inner,
           std::unique_ptr<SocketListener> sockets,
           std::shared_ptr<MeetingPlaces> places)
      : inner_(std::move(inner)),
        sockets_(std::move(sockets)),
        places_(std::move(places)) {}
  // Frees the names before the ports, because another server may take the ports
  // immediately afterwards. gRPC's engine may keep a reference to the places
  // longer than this object lives.
  ~Listener() override { places_->Close(); }

  absl::StatusOr<int> Bind(
      const EventEngine::ResolvedAddress& address) override {
    const bool is_ours = sockets_ != nullptr && IsTcp(address);
    absl::StatusOr<int> port =
        is_ours ? sockets_->Bind(address) : inner_->Bind(address);
    if (port.ok()) places_->Open(address, *port);
    return port;
  }
  absl::Status Start() override {
    if (sockets_ != nullptr) {
      absl::Status started = sockets_->Start();
      if (!started.ok()) return started;
    }
    return inner_->Start();
  }

 private:
  const std::unique_ptr<EventEngine::Listener> inner_;
  const std::unique_ptr<SocketListener> sockets_;  // ends before inner_
  const std::shared_ptr<MeetingPlaces> places_;
};

}  // namespace

int InternSettings(const Settings& settings) {
  const std::string text = settings.ToString();
  base::MutexLock lock(&all_settings()->mu);
  std::deque<Settings>& all = all_settings()->all;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].ToString() == text) return static_cast<int>(i) + 1;
  }
  all.push_back(settings);
  return static_cast<int>(all.size());
}

absl::Status InstallEngine() {
  static const absl::Status* const installed = [] {
    absl::StatusOr<progress::PollingMode> mode = ResolvePolling();
    if (!mode.ok()) return new absl::Status(mode.status());
    absl::StatusOr<Crew*> crew = Crew::Get(*mode);
    if (crew.ok()) {
      using namespace grpc_event_engine::experimental;  // NOLINT: two names
      SetDefaultEventEngine(
          std::make_shared<Engine>(CreateEventEngine(), *crew));
    }
    return new absl::Status(crew.status());
  }();
  return *installed;
}

Engine::Engine(std::shared_ptr<EventEngine> inner, Crew* crew)
    : inner_(std::move(inner)), crew_(crew), dialer_(new Dialer(crew)) {}

Engine::~Engine() = default;

absl::StatusOr<std::unique_ptr<EventEngine::Listener>> Engine::CreateListener(
    Listener::AcceptCallback on_accept,
    absl::AnyInvocable<void(absl::Status)> on_shutdown,
    const EndpointConfig& config,
    std::unique_ptr<MemoryAllocatorFactory> memory_allocator_factory) {
  const absl::optional<Settings> settings = SettingsOf(config);
  if (!settings.has_value()) {
    return inner_->CreateListener(std::move(on_accept), std::move(on_shutdown),
                                  config, std::move(memory_allocator_factory));
  }
  auto places = std::make_shared<MeetingPlaces>(*settings);
  auto acceptor =
      std::make_shared<Acceptor>(std::move(on_accept), std::move(on_shutdown));
  // A weak reference, because the inner listener may keep `accept` after its
  // own on_shutdown.
  std::weak_ptr<Acceptor> weak = acceptor;
  auto accept = [places, weak, crew = crew_](std::unique_ptr<Endpoint> tcp,
                                             MemoryAllocator allocator) {
    std::shared_ptr<Acceptor> acceptor = weak.lock();
    if (acceptor == nullptr) return;
    auto memory = std::make_shared<MemoryAllocator>(std::move(allocator));
    places->WrapAccepted(
        std::move(tcp), crew,
        [acceptor, memory](absl::StatusOr<std::unique_ptr<Endpoint>> endpoint) {
          acceptor->Accept(std::move(endpoint), std::move(*memory));
        });
  };
  auto shut_down = [acceptor =
                        std::move(acceptor)](absl::Status status) mutable {
    acceptor->ShutDown(std::move(status));
    acceptor.reset();
  };
  const std::shared_ptr<MemoryAllocatorFactory> memory =
      std::move(memory_allocator_factory);
  const auto options = SocketOptions::Of(config, /*is_client=*/false);
  std::unique_ptr<SocketListener> sockets;
  if (options.has_value()) {
    sockets = std::make_unique<SocketListener>(*options, crew_, memory, accept);
  }
  auto inner =
      inner_->CreateListener(std::move(accept), std::move(shut_down), config,
                             std::make_unique<SharedMemoryFactory>(memory));
  if (!inner.ok()) return inner.status();
  return std::make_unique<event_engine::Listener>(*std::move(inner),
                                                  std::move(sockets), places);
}

EventEngine::ConnectionHandle Engine::Connect(OnConnectCallback on_connect,
                                              const ResolvedAddress& addr,
                                              const EndpointConfig& args,
                                              MemoryAllocator memory_allocator,
                                              Duration timeout) {
  const absl::optional<Settings> settings = SettingsOf(args);
  if (!settings.has_value()) {
    return inner_->Connect(std::move(on_connect), addr, args,
                           std::move(memory_allocator), timeout);
  }
  auto wrap = [on_connect = std::move(on_connect), settings, crew = crew_](
                  absl::StatusOr<std::unique_ptr<Endpoint>> tcp) mutable {
    if (!tcp.ok()) return on_connect(tcp.status());
    auto done = std::make_shared<OnConnectCallback>(std::move(on_connect));
    WrapConnected(*std::move(tcp), crew, *settings,
                  [done](absl::StatusOr<std::unique_ptr<Endpoint>> result) {
                    (*done)(std::move(result));
                  });
  };
  const auto options = SocketOptions::Of(args, /*is_client=*/true);
  if (options.has_value() && IsTcp(addr)) {
    return dialer_->Connect(std::move(wrap), addr, *options,
                            absl::FromChrono(timeout));
  }
  return inner_->Connect(std::move(wrap), addr, args,
                         std::move(memory_allocator), timeout);
}

bool Engine::CancelConnect(ConnectionHandle handle) {
  return dialer_->Owns(handle) ? dialer_->Cancel(handle)
                               : inner_->CancelConnect(handle);
}

bool Engine::IsWorkerThread() {
  return crew_->IsCurrent() || inner_->IsWorkerThread();
}

absl::StatusOr<std::unique_ptr<EventEngine::DNSResolver>>
Engine::GetDNSResolver(const DNSResolver::ResolverOptions& options) {
  return inner_->GetDNSResolver(options);
}

void Engine::Run(Closure* closure) {
  crew_->Run([closure] { closure->Run(); });
}

void Engine::Run(absl::AnyInvocable<void()> closure) {
  crew_->Run(std::move(closure));
}

EventEngine::TaskHandle Engine::RunAfter(Duration when, Closure* closure) {
  return inner_->RunAfter(when, closure);
}

EventEngine::TaskHandle Engine::RunAfter(Duration when,
                                         absl::AnyInvocable<void()> closure) {
  return inner_->RunAfter(when, std::move(closure));
}

bool Engine::Cancel(TaskHandle handle) { return inner_->Cancel(handle); }

}  // namespace event_engine
}  // namespace penstock
