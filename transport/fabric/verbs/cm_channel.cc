#include "transport/fabric/verbs/cm_channel.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "transport/fabric/verbs/status.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

bool SetNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

// Returns true for events that carry the fields of a connection.
bool HasConnection(rdma_cm_event_type type) {
  return type == RDMA_CM_EVENT_CONNECT_REQUEST ||
         type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_REJECTED;
}

CmEvent Copy(Api* api, const rdma_cm_event& event) {
  CmEvent copy;
  copy.type = event.event;
  copy.status = event.status;
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    copy.request = CmId(api, event.id);
  }
  if (HasConnection(event.event)) {
    const rdma_conn_param& connection = event.param.conn;
    if (connection.private_data != nullptr) {
      copy.private_data.assign(
          static_cast<const char*>(connection.private_data),
          connection.private_data_len);
    }
    copy.qp_number = connection.qp_num;
    copy.responder_resources = connection.responder_resources;
    copy.initiator_depth = connection.initiator_depth;
  }
  return copy;
}

}  // namespace

absl::StatusOr<std::shared_ptr<CmChannel>> CmChannel::Create(
    Api* api, progress::EventLoop* loop) {
  rdma_event_channel* const channel = api->CreateEventChannel();
  // Explains the most common failure: neither the kernel module nor a device
  // exists.
  if (channel == nullptr && (errno == ENODEV || errno == ENOENT)) {
    return absl::NotFoundError("no RDMA device on this host");
  }
  if (channel == nullptr) {
    return CallFailed(api, errno, "open the RDMA connection manager", nullptr);
  }
  std::shared_ptr<CmChannel> self(new CmChannel(api, loop, channel));
  if (!SetNonBlocking(channel->fd)) {
    return CallFailed(api, errno, "set up the RDMA connection manager",
                      nullptr);
  }
  std::weak_ptr<CmChannel> weak = self;
  absl::StatusOr<progress::EventLoop::Id> watch =
      loop->Watch(channel->fd, EPOLLIN, [weak](uint32_t) {
        if (std::shared_ptr<CmChannel> live = weak.lock()) {
          live->DispatchOnLoop();
        }
      });
  if (!watch.ok()) return watch.status();
  self->watch_ = *watch;
  return self;
}

CmChannel::~CmChannel() {
  loop_->Unwatch(watch_);
  api_->DestroyEventChannel(channel_);
}

absl::StatusOr<CmId> CmChannel::NewId() { return CreateId(api_, channel_); }

void CmChannel::SetHandler(rdma_cm_id* id, std::weak_ptr<CmHandler> handler) {
  base::MutexLock lock(&mu_);
  handlers_[id] = std::move(handler);
}

void CmChannel::Forget(rdma_cm_id* id) {
  base::MutexLock lock(&mu_);
  handlers_.erase(id);
}

void CmChannel::DispatchOnLoop() {
  rdma_cm_event* event = nullptr;
  while (api_->GetCmEvent(channel_, &event) == 0) {
    rdma_cm_id* const addressee =
        event->listen_id != nullptr ? event->listen_id : event->id;
    CmEvent copy = Copy(api_, *event);
    std::shared_ptr<CmHandler> handler;
    {
      base::MutexLock lock(&mu_);
      auto it = handlers_.find(addressee);
      if (it != handlers_.end()) handler = it->second.lock();
    }
    api_->AckCmEvent(event);
    if (handler != nullptr) handler->OnCmEvent(std::move(copy));
  }
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
