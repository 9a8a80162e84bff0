// Looks after a process's connections: for what devices report about
// themselves, and for what they do not report.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_SUPERVISOR_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_SUPERVISOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "transport/fabric/verbs/api.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {

// One that is looked after. Called on the event loop's thread.
class Supervised {
 public:
  virtual ~Supervised() = default;
  virtual ibv_context* device() const = 0;
  virtual uint8_t port() const = 0;
  // The device has failed, or the port is down.
  virtual void OnDeviceEvent(const absl::Status& cause) = 0;
  // Once in kSupervisionPeriod.
  virtual void OnTick() = 0;
};

constexpr absl::Duration kSupervisionPeriod = absl::Milliseconds(250);

// Ticks while there is anybody to look after, and listens to the asynchronous
// events of their devices, for good. Thread-safe.
class Supervisor : public std::enable_shared_from_this<Supervisor> {
 public:
  // One for all fabrics that use `api`: a device tells each event once.
  static std::shared_ptr<Supervisor> For(Api* api, progress::EventLoop* loop);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  // Until it is gone.
  void Add(std::weak_ptr<Supervised> supervised);

 private:
  Supervisor(Api* api, progress::EventLoop* loop) : api_(api), loop_(loop) {}
  void WatchDeviceLocked(ibv_context* device);
  void ReadEventsOnLoop(ibv_context* device);
  void ReportOnLoop(const ibv_async_event& event, ibv_context* device);
  void TickLocked();
  void TickOnLoop();
  std::vector<std::shared_ptr<Supervised>> Living();

  Api* const api_;
  progress::EventLoop* const loop_;

  std::mutex mu_;  // guards the rest
  bool ticking_ = false;
  std::vector<std::weak_ptr<Supervised>> all_;
  std::map<ibv_context*, progress::EventLoop::Id> devices_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_SUPERVISOR_H_
