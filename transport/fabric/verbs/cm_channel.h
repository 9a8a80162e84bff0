// Hands the connection manager's events to whom they concern.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_CM_CHANNEL_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_CM_CHANNEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {

// A copy of an event: the event itself has been acknowledged, as nobody can
// destroy an identifier before that.
struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  int status = 0;
  // Of CONNECT_REQUEST, ESTABLISHED and REJECTED; the peer's.
  std::string private_data;
  uint32_t qp_number = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  // CONNECT_REQUEST: the identifier of the connection that is asked for.
  CmId request;
};

// Whoever has an identifier. Called on the event loop's thread, without locks.
class CmHandler {
 public:
  virtual ~CmHandler() = default;
  virtual void OnCmEvent(CmEvent event) = 0;
};

// One event channel. Thread-safe.
class CmChannel : public std::enable_shared_from_this<CmChannel> {
 public:
  static absl::StatusOr<std::shared_ptr<CmChannel>> Create(
      Api* api, progress::EventLoop* loop);
  CmChannel(const CmChannel&) = delete;
  CmChannel& operator=(const CmChannel&) = delete;
  ~CmChannel();

  // A new identifier, whose events go to Route()'s handler.
  absl::StatusOr<CmId> NewId();
  // From now on events of `id` go to `handler`; those of an identifier without
  // one are dropped.
  void Route(rdma_cm_id* id, std::weak_ptr<CmHandler> handler);
  // Before `id` is destroyed.
  void Forget(rdma_cm_id* id);

 private:
  CmChannel(Api* api, progress::EventLoop* loop, rdma_event_channel* channel)
      : api_(api), loop_(loop), channel_(channel) {}
  void DispatchOnLoop();

  Api* const api_;
  progress::EventLoop* const loop_;
  rdma_event_channel* const channel_;
  progress::EventLoop::Id watch_ = 0;

  std::mutex mu_;
  std::map<rdma_cm_id*, std::weak_ptr<CmHandler>> handlers_;  // guarded by mu_
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_CM_CHANNEL_H_
