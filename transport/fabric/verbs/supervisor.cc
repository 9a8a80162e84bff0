#include "transport/fabric/verbs/supervisor.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "transport/base/mutex.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Returns the effect of an event on the connections of its device. OK means no
// effect.
absl::Status Meaning(ibv_event_type event) {
  switch (event) {
    case IBV_EVENT_DEVICE_FATAL:
      return absl::UnavailableError("the RDMA device has failed");
    case IBV_EVENT_PORT_ERR:
      return absl::UnavailableError("the RDMA device's port is down");
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
      return absl::UnavailableError("the RDMA device's address has changed");
    default:
      return absl::OkStatus();
  }
}

bool IsOfPort(ibv_event_type event) {
  return event == IBV_EVENT_PORT_ERR || event == IBV_EVENT_GID_CHANGE ||
         event == IBV_EVENT_LID_CHANGE;
}

}  // namespace

std::shared_ptr<Supervisor> Supervisor::For(Api* api,
                                            progress::EventLoop* loop) {
  struct Registry {
    base::Mutex mu;
    std::map<Api*, std::weak_ptr<Supervisor>> all ABSL_GUARDED_BY(mu);
  };
  static Registry* const registry = new Registry;
  base::MutexLock lock(&registry->mu);
  std::weak_ptr<Supervisor>& known = registry->all[api];
  std::shared_ptr<Supervisor> found = known.lock();
  if (found == nullptr) {
    found.reset(new Supervisor(api, loop));
    known = found;
  }
  return found;
}

Supervisor::~Supervisor() {
  for (const auto& device : devices_) loop_->Unwatch(device.second);
}

void Supervisor::Add(std::weak_ptr<Supervised> supervised) {
  std::shared_ptr<Supervised> living = supervised.lock();
  if (living == nullptr) return;
  base::MutexLock lock(&mu_);
  all_.push_back(std::move(supervised));
  WatchDeviceLocked(living->device());
  TickLocked();
}

void Supervisor::WatchDeviceLocked(ibv_context* device) {
  if (devices_.count(device) > 0) return;
  const int flags = fcntl(device->async_fd, F_GETFL);
  if (flags < 0 || fcntl(device->async_fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return;
  }
  std::weak_ptr<Supervisor> weak = shared_from_this();
  absl::StatusOr<progress::EventLoop::Id> watch =
      loop_->Watch(device->async_fd, EPOLLIN, [weak, device](uint32_t) {
        if (std::shared_ptr<Supervisor> self = weak.lock()) {
          self->ReadEventsOnLoop(device);
        }
      });
  // Continues without a watch, because missing completions also reveal a
  // failure.
  if (watch.ok()) devices_[device] = *watch;
}

void Supervisor::ReadEventsOnLoop(ibv_context* device) {
  ibv_async_event event;
  while (api_->GetAsyncEvent(device, &event) == 0) {
    ReportOnLoop(event, device);
    api_->AckAsyncEvent(&event);
  }
}

void Supervisor::ReportOnLoop(const ibv_async_event& event,
                              ibv_context* device) {
  const absl::Status meaning = Meaning(event.event_type);
  if (meaning.ok()) return;
  for (const std::shared_ptr<Supervised>& each : Living()) {
    if (each->device() != device) continue;
    if (IsOfPort(event.event_type) && each->port() != event.element.port_num) {
      continue;
    }
    each->OnDeviceEvent(meaning);
  }
}

std::vector<std::shared_ptr<Supervised>> Supervisor::Living() {
  std::vector<std::shared_ptr<Supervised>> living;
  base::MutexLock lock(&mu_);
  const auto end =
      std::remove_if(all_.begin(), all_.end(), [&living](const auto& each) {
        std::shared_ptr<Supervised> shared = each.lock();
        if (shared == nullptr) return true;
        living.push_back(std::move(shared));
        return false;
      });
  all_.erase(end, all_.end());
  return living;
}

void Supervisor::TickLocked() {
  if (ticking_) return;
  ticking_ = true;
  std::weak_ptr<Supervisor> weak = shared_from_this();
  loop_->RunAfter(kSupervisionPeriod, [weak] {
    if (std::shared_ptr<Supervisor> self = weak.lock()) self->TickOnLoop();
  });
}

void Supervisor::TickOnLoop() {
  const std::vector<std::shared_ptr<Supervised>> living = Living();
  for (const std::shared_ptr<Supervised>& each : living) each->OnTick();
  base::MutexLock lock(&mu_);
  ticking_ = false;
  if (!all_.empty()) TickLocked();
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
