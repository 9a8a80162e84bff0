#include "tests/transport/grpc/state_gate.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <utility>

#include "src/core/lib/gprpp/orphanable.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/transport/connectivity_state.h"
#include "src/core/lib/transport/transport.h"
#include "transport/grpc/transport.h"
#include "transport/grpc/transport_registry.h"

namespace penstock {
namespace core {

struct StateGate::Shared {
  std::mutex mu;
  std::condition_variable changed;
  bool held_up = false;
  bool open = false;

  void Pass() {
    std::unique_lock<std::mutex> lock(mu);
    held_up = true;
    changed.notify_all();
    changed.wait(lock, [this] { return open; });
  }
};

namespace {

// A watcher that gRPC calls before the channel's own watcher. gRPC calls
// watchers in the order of their addresses. This watcher is in static memory,
// whose addresses are lower than those of the heap.
class Watcher : public grpc_core::AsyncConnectivityStateWatcherInterface {
 public:
  explicit Watcher(std::function<void()> pass) : pass_(std::move(pass)) {}

  static void* operator new(size_t size) {
    constexpr size_t kBytes = 256;
    constexpr int kWatchers = 64;
    alignas(std::max_align_t) static char memory[kWatchers][kBytes];
    static int used = 0;
    if (size > kBytes || used == kWatchers) std::abort();
    return memory[used++];
  }
  static void operator delete(void*) {}

 private:
  void OnConnectivityStateChange(grpc_connectivity_state,
                                 const absl::Status&) override {
    pass_();
  }

  const std::function<void()> pass_;
};

// Returns the newest transport of a client, with a reference, or null.
Transport* NewestClient() {
  constexpr intptr_t kSockets = 10000;  // channelz counts from 1
  for (intptr_t socket = kSockets; socket > 0; --socket) {
    Transport* transport = TransportRegistry::Get()->Find(socket);
    if (transport == nullptr) continue;
    if (transport->is_client()) return transport;
    transport->Unref();
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<StateGate> StateGate::Close() {
  grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
  grpc_core::ExecCtx exec_ctx;
  Transport* transport = NewestClient();
  if (transport == nullptr) return nullptr;
  auto shared = std::make_shared<Shared>();
  grpc_transport_op* op = grpc_make_transport_op(nullptr);
  op->start_connectivity_watch.reset(new Watcher([shared] { shared->Pass(); }));
  op->start_connectivity_watch_state = GRPC_CHANNEL_READY;
  grpc_transport_perform_op(transport, op);
  transport->Unref();
  return std::unique_ptr<StateGate>(new StateGate(std::move(shared)));
}

StateGate::StateGate(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)) {}

StateGate::~StateGate() { Open(); }

bool StateGate::AwaitNotice() {
  std::unique_lock<std::mutex> lock(shared_->mu);
  return shared_->changed.wait_for(lock, std::chrono::seconds(10),
                                   [this] { return shared_->held_up; });
}

void StateGate::Open() {
  std::lock_guard<std::mutex> lock(shared_->mu);
  shared_->open = true;
  shared_->changed.notify_all();
}

}  // namespace core
}  // namespace penstock
