// Forms a group again, for example of the ranks that remain after a fault.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/hierarchical/group.h"
#include "collectives/net/group.h"
#include "collectives/net/listener.h"
#include "frameworks/torch/backend.h"
#include "frameworks/torch/engine.h"
#include "frameworks/torch/errors.h"
#include "frameworks/torch/place.h"
#include "frameworks/torch/torch_headers.h"
#include "penstock/options.h"
#include "transport/base/mutex.h"
#include "transport/settings/settings.h"

#ifdef C10D_BACKEND_HAS_RECONFIGURE

namespace penstock {
namespace pytorch {
namespace {

using collectives::HierarchicalGroup;
using collectives::Listener;

constexpr char kTitle[] = "penstock:reconfigure";

// Returns the handles in the order of the ranks. All ranks choose alike.
std::vector<std::string> InOrder(const c10d::ReconfigureOptions& options) {
  if (const auto* list =
          std::get_if<std::vector<std::string>>(&options.handles)) {
    return *list;
  }
  const auto& set = std::get<std::unordered_set<std::string>>(options.handles);
  std::vector<std::string> handles(set.begin(), set.end());
  std::sort(handles.begin(), handles.end());
  return handles;
}

// Opens a listener at the address at which other ranks reach this rank. Returns
// the listener and that address.
absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& store_host,
                                                 std::string* host) {
  const absl::StatusOr<Place> place = PlaceOfProcess(store_host);
  if (!place.ok()) return place.status();
  const absl::StatusOr<std::vector<std::string>> addresses =
      AddressesOf({*place});
  if (!addresses.ok()) return addresses.status();
  absl::StatusOr<Settings> settings = ResolveSettings(penstock::Options());
  if (!settings.ok()) return settings.status();
  collectives::ListenerOptions options;
  options.host = *host = addresses->front();
  options.neighbourhood = place->host;
  options.settings = *std::move(settings);
  return Listener::Open(options);
}

}  // namespace

c10d::ReconfigureHandle Backend::get_reconfigure_handle() const {
  base::MutexLock lock(&mu_);
  if (listener_ == nullptr) {
    auto listener = Listen(store_host_, &listener_host_);
    if (!listener.ok()) {
      std::rethrow_exception(ErrorOf(kTitle, listener.status()));
    }
    listener_ = *std::move(listener);
  }
  return listener_->address();
}

Backend::Work Backend::reconfigure(const c10d::ReconfigureOptions& options) {
  const std::vector<std::string> handles = InOrder(options);
  const absl::Status status = FormGroupAgain(
      handles, absl::FromChrono(options.timeout.value_or(options_->timeout)));
  Operation::Description description{c10d::OpType::UNKNOWN, kTitle};
  auto operation = c10::make_intrusive<Operation>(
      getRank(), description, Tensors(), Tensors(), nullptr);
  operation->Finish(status.ok() ? nullptr : ErrorOf(kTitle, status));
  return operation;
}

absl::Status Backend::FormGroupAgain(const std::vector<std::string>& handles,
                                     absl::Duration timeout) {
  std::unique_ptr<Listener> listener;
  std::shared_ptr<Engine> old;
  FormedGroup formed;
  {
    base::MutexLock lock(&mu_);
    listener = std::move(listener_);
    formed.address = listener_host_;
    old = std::move(engine_);
    engine_ = nullptr;
  }
  // Aborts the present group, whose ranks may have died.
  if (old != nullptr) old->Abort();
  old.reset();
  const auto own =
      listener == nullptr
          ? handles.end()
          : std::find(handles.begin(), handles.end(), listener->address());
  if (own == handles.end()) {
    return absl::InvalidArgumentError(
        "the handles do not include this rank's last one: call "
        "get_reconfigure_handle() on each rank before each reconfigure()");
  }
  collectives::NetGroupOptions options;
  options.rank = static_cast<int>(own - handles.begin());
  options.forming_timeout = timeout;
  if (options_->timeout.count() > 0) {
    options.timeout = absl::FromChrono(options_->timeout);
  }
  auto group = HierarchicalGroup::Form(std::move(listener), handles, options);
  if (!group.ok()) return group.status();
  formed.group = *std::move(group);
  auto engine = Engine::Start(std::move(formed));
  if (!engine.ok()) return engine.status();
  base::MutexLock lock(&mu_);
  rank_ = options.rank;
  size_ = static_cast<int>(handles.size());
  engine_ = *std::move(engine);
  return absl::OkStatus();
}

}  // namespace pytorch
}  // namespace penstock

#endif  // C10D_BACKEND_HAS_RECONFIGURE
