// Monitors the verbs connections of a process. Reports events of devices to the
// connections, and calls each connection periodically, to find failures that
// the device does not report.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_SUPERVISOR_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_SUPERVISOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "transport/base/mutex.h"
#include "transport/fabric/verbs/api.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {

// A monitored connection. Called on the event loop's thread, without locks.
class Supervised {
 public:
  virtual ~Supervised() = default;
  virtual ibv_context* device() const = 0;
  virtual uint8_t port() const = 0;
  // Reports that the device has failed, or that the port is down.
  virtual void OnDeviceEvent(const absl::Status& cause) = 0;
  // Called once in kSupervisionPeriod.
  virtual void OnTick() = 0;
};

constexpr absl::Duration kSupervisionPeriod = absl::Milliseconds(250);

// Ticks while connections exist, and meanwhile reads the asynchronous events of
// their devices. Thread-safe.
class Supervisor : public std::enable_shared_from_this<Supervisor> {
 public:
  // Returns the shared instance of all fabrics that use `api`, because a device
  // reports each event once. Makes one if there is none.
  static std::shared_ptr<Supervisor> For(Api* api, progress::EventLoop* loop);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  // Monitors `supervised` until it is destroyed.
  void Add(std::weak_ptr<Supervised> supervised);

 private:
  Supervisor(Api* api, progress::EventLoop* loop) : api_(api), loop_(loop) {}
  void WatchDeviceLocked(ibv_context* device)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadEventsOnLoop(ibv_context* device);
  void ReportOnLoop(const ibv_async_event& event, ibv_context* device);
  void TickLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TickOnLoop();
  // Returns the connections that still exist, and forgets the others.
  std::vector<std::shared_ptr<Supervised>> Living();

  Api* const api_;
  progress::EventLoop* const loop_;

  base::Mutex mu_;
  bool ticking_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::weak_ptr<Supervised>> all_ ABSL_GUARDED_BY(mu_);
  std::map<ibv_context*, progress::EventLoop::Id> devices_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_SUPERVISOR_H_
