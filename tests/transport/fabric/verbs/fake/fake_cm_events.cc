// The event channels of the fake connection manager.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tests/transport/fabric/verbs/fake/fake_cm.h"

namespace penstock {
namespace fabric {
namespace verbs {

int FakeCm::CreateChannel(rdma_event_channel** made) {
  auto* const channel = new FakeEventChannel();
  channel->fd = channel->signal.fd();
  network_->ledger.Made("rdma_event_channel", channel);
  *made = channel;
  return 0;
}

void FakeCm::DestroyChannel(rdma_event_channel* channel) {
  if (!network_->ledger.IsAlive("rdma_event_channel", channel)) return;
  auto* const own = static_cast<FakeEventChannel*>(channel);
  if (own->ids > 0) {
    // Keeps the channel alive, since its ids still point to it.
    network_->ledger.Misused("rdma_destroy_event_channel before its ids");
    return;
  }
  for (FakeCmEvent* const event : own->events) delete event;
  network_->ledger.Ended(channel);
  delete own;
}

void FakeCm::Report(FakeId* id, rdma_cm_event_type type, int status,
                    OnGet on_get) {
  auto* const event = new FakeCmEvent();
  event->id = id;
  event->event = type;
  event->status = status;
  event->on_get = std::move(on_get);
  Push(id, event);
}

void FakeCm::ReportConnection(FakeId* id, rdma_cm_event_type type, int status,
                              const rdma_conn_param& param,
                              const std::string& private_data, OnGet on_get) {
  auto* const event = new FakeCmEvent();
  event->id = id;
  event->event = type;
  event->status = status;
  event->param.conn = param;
  event->private_data = private_data;
  event->on_get = std::move(on_get);
  Push(id, event);
}

void FakeCm::Push(FakeId* owner, FakeCmEvent* event) {
  rdma_conn_param& param = event->param.conn;
  param.private_data =
      event->private_data.empty() ? nullptr : event->private_data.data();
  param.private_data_len = static_cast<uint8_t>(event->private_data.size());
  event->owner = owner;
  auto* const channel = static_cast<FakeEventChannel*>(owner->channel);
  channel->events.push_back(event);
  channel->signal.Signal();
}

bool FakeCm::TakeEvent(rdma_event_channel* channel, rdma_cm_event** event) {
  auto& events = static_cast<FakeEventChannel*>(channel)->events;
  if (events.empty()) return false;
  FakeCmEvent* const taken = events.front();
  events.pop_front();
  ++taken->owner->unacked;
  taken->owner->taker = std::this_thread::get_id();
  network_->ledger.Made("rdma_cm_event", taken);
  if (taken->on_get != nullptr) taken->on_get();
  *event = taken;
  return true;
}

int FakeCm::Ack(rdma_cm_event* event) {
  if (!network_->ledger.IsAlive("rdma_cm_event", event)) return EINVAL;
  auto* const own = static_cast<FakeCmEvent*>(event);
  for (const auto& entry : ids_) {
    // Skips an owner that was destroyed too early, which has been reported
    // already.
    if (entry.second == own->owner) --own->owner->unacked;
  }
  network_->ledger.Ended(event);
  delete own;
  return 0;
}

void FakeCm::ForgetEvents(FakeId* owner, const rdma_cm_id* id) {
  auto* const channel = static_cast<FakeEventChannel*>(id->channel);
  auto& events = channel->events;
  for (auto event = events.begin(); event != events.end();) {
    if ((*event)->owner == owner || (*event)->id == id) {
      delete *event;
      event = events.erase(event);
      channel->signal.TakeBack();
    } else {
      ++event;
    }
  }
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
