// Dispatches the connection manager's events to their handlers.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_CM_CHANNEL_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_CM_CHANNEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {

// A copy of a connection manager's event. The event itself is acknowledged when
// it is copied, because rdma_destroy_id() blocks until all events of the
// identifier are acknowledged.
struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  int status = 0;
  // The peer's data, in CONNECT_REQUEST, ESTABLISHED and REJECTED.
  std::string private_data;
  uint32_t qp_number = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  // In CONNECT_REQUEST: the new identifier of the requested connection.
  CmId request;
};

// Handles the events of one identifier. Called on the event loop's thread,
// without locks.
class CmHandler {
 public:
  virtual ~CmHandler() = default;
  virtual void OnCmEvent(CmEvent event) = 0;
};

// Owns an event channel, and reads it on the event loop's thread. Thread-safe.
class CmChannel : public std::enable_shared_from_this<CmChannel> {
 public:
  static absl::StatusOr<std::shared_ptr<CmChannel>> Create(
      Api* api, progress::EventLoop* loop);
  CmChannel(const CmChannel&) = delete;
  CmChannel& operator=(const CmChannel&) = delete;
  ~CmChannel();

  // Makes an identifier, whose events go to the handler of SetHandler().
  absl::StatusOr<CmId> NewId();
  // Passes events of `id` to `handler` from now on, while the handler exists.
  // Events of an identifier without a handler are dropped.
  void SetHandler(rdma_cm_id* id, std::weak_ptr<CmHandler> handler);
  // Removes the handler of `id`. Call Forget() before destroying `id`.
  void Forget(rdma_cm_id* id);

 private:
  CmChannel(Api* api, progress::EventLoop* loop, rdma_event_channel* channel)
      : api_(api), loop_(loop), channel_(channel) {}
  void DispatchOnLoop();

  Api* const api_;
  progress::EventLoop* const loop_;
  rdma_event_channel* const channel_;
  progress::EventLoop::Id watch_ = 0;

  base::Mutex mu_;
  std::map<rdma_cm_id*, std::weak_ptr<CmHandler>> handlers_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_CM_CHANNEL_H_
