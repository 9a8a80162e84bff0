#include "transport/grpc/internal/call_destinations.h"

#include <utility>

#include "src/core/lib/channel/context.h"
#include "src/core/lib/surface/call.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/grpc/internal/late_slices.h"
#include "transport/grpc/internal/mismatch.h"

namespace penstock {
namespace core {
namespace {

using Shared = std::shared_ptr<memory::Destinations>;

// The slot of the call's context that keeps the destinations. A reserved slot,
// which gRPC neither sets nor reads. If the slot's destroy function is
// Delete(), this file has set the value.
constexpr grpc_context_index kSlot = GRPC_CONTEXT_TRAFFIC;

void Delete(void* shared) { delete static_cast<Shared*>(shared); }

// A reference to destinations. Their destructor may call the program's code, so
// this object drops the reference only when the thread holds no locks.
struct Held {
  explicit Held(Shared shared) : destinations(std::move(shared)) {}
  ~Held() {
    void* const data = destinations.get();
    DropLate(grpc_core::Slice(grpc_slice_new_with_user_data(
        data, sizeof(memory::Destinations), &Delete,
        new Shared(std::move(destinations)))));
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  Shared destinations;
};

}  // namespace

void AttachDestinations(grpc::ClientContext* context, Shared destinations) {
  grpc_call* const call = context->c_call();
  if (call == nullptr || GrpcMismatch() != nullptr) return;
  grpc_call_context_set(call, kSlot, new Shared(std::move(destinations)),
                        &Delete);
}

Shared DestinationsOf(const grpc_call_context_element* context) {
  if (context == nullptr || context[kSlot].destroy != &Delete) return nullptr;
  auto held =
      std::make_shared<Held>(*static_cast<const Shared*>(context[kSlot].value));
  memory::Destinations* const destinations = held->destinations.get();
  return Shared(held, destinations);
}

}  // namespace core
}  // namespace penstock
