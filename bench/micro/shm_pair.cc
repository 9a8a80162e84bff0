#include "bench/micro/shm_pair.h"

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "transport/base/token.h"
#include "transport/fabric/shm/fabric.h"

namespace penstock {
namespace bench {
namespace {

using End = absl::StatusOr<std::unique_ptr<fabric::Endpoint>>;

// The result of a connection's callback. std::function needs a copyable object.
struct Outcome {
  std::shared_ptr<std::promise<End>> promise =
      std::make_shared<std::promise<End>>();

  fabric::ConnectCallback callback() const {
    return [promise = promise](End end) { promise->set_value(std::move(end)); };
  }
  End Take() { return promise->get_future().get(); }
};

// Returns the shared memory fabric of this process. The transport also has one
// per process.
fabric::shm::ShmFabric* ProcessFabric() {
  static auto* fabric = new fabric::shm::ShmFabric;
  return fabric;
}

}  // namespace

absl::StatusOr<ShmPair> ConnectShm() {
  const absl::StatusOr<std::string> token = base::NewToken();
  if (!token.ok()) return token.status();
  const absl::StatusOr<std::string> offer = ProcessFabric()->Offer();
  if (!offer.ok()) return offer.status();
  Outcome listened, connected;
  const auto listen = ProcessFabric()->Listen(*token, listened.callback());
  const auto connect =
      ProcessFabric()->Connect(*offer, *token, connected.callback());
  End ends[] = {listened.Take(), connected.Take()};
  for (const End& end : ends) {
    if (!end.ok()) return end.status();
  }
  return ShmPair{*std::move(ends[0]), *std::move(ends[1])};
}

}  // namespace bench
}  // namespace penstock
