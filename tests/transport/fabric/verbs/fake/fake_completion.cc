#include "tests/transport/fabric/verbs/fake/fake_completion.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace penstock {
namespace fabric {
namespace verbs {

int FakeCompletions::CreateChannel(ibv_context* context,
                                   ibv_comp_channel** made) {
  if (FakeDevices::Of(context)->removed) return EIO;
  auto* const channel = new FakeCompChannel();
  channel->context = context;
  channel->fd = channel->signal.fd();
  ledger_->Made("ibv_comp_channel", channel);
  *made = channel;
  return 0;
}

int FakeCompletions::DestroyChannel(ibv_comp_channel* channel) {
  if (!ledger_->IsAlive("ibv_comp_channel", channel)) return EINVAL;
  auto* const own = static_cast<FakeCompChannel*>(channel);
  if (own->users > 0) {
    ledger_->Misused("ibv_destroy_comp_channel before its queues");
    return EBUSY;
  }
  ledger_->Ended(channel);
  delete own;
  return 0;
}

int FakeCompletions::CreateCq(ibv_context* context, int entries,
                              void* cq_context, ibv_comp_channel* channel,
                              int vector, ibv_cq** made) {
  const FakeDevice& device = *FakeDevices::Of(context);
  if (device.removed) return EIO;
  if (entries < 1 || entries > device.options.max_cqe) return EINVAL;
  if (vector < 0 || vector >= device.num_comp_vectors) return EINVAL;
  if (channel != nullptr) {
    if (!ledger_->IsAlive("ibv_comp_channel", channel)) return EINVAL;
    ++static_cast<FakeCompChannel*>(channel)->users;
    ++channel->refcnt;
  }
  auto* const cq = new FakeCq();
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = cq_context;
  cq->cqe = entries;
  ledger_->Made("ibv_cq", cq);
  *made = cq;
  return 0;
}

int FakeCompletions::DestroyCq(ibv_cq* cq) {
  if (!ledger_->IsAlive("ibv_cq", cq)) return EINVAL;
  auto* const own = static_cast<FakeCq*>(cq);
  if (own->users > 0) {
    ledger_->Misused("ibv_destroy_cq before its queue pairs");
    return EBUSY;
  }
  if (own->unacked > 0) {
    ledger_->Misused("ibv_destroy_cq with unacknowledged events hangs");
  }
  if (cq->channel != nullptr) {
    auto* const channel = static_cast<FakeCompChannel*>(cq->channel);
    auto& events = channel->events;
    const auto kept = std::remove(events.begin(), events.end(), own);
    for (auto event = kept; event != events.end(); ++event) {
      channel->signal.TakeBack();
    }
    events.erase(kept, events.end());
    --channel->users;
    --channel->refcnt;
  }
  devices_->ForgetAsync(cq->context, cq);
  ledger_->Ended(cq);
  delete own;
  return 0;
}

int FakeCompletions::Arm(ibv_cq* cq, bool solicited_only) {
  if (!ledger_->IsAlive("ibv_cq", cq)) return EINVAL;
  auto* const own = static_cast<FakeCq*>(cq);
  // Keeps an earlier request for all events. A later request for fewer events
  // does not cancel it (IBTA 11.4.2.2).
  own->solicited_only = solicited_only && (!own->armed || own->solicited_only);
  own->armed = true;
  return 0;
}

ibv_cq* FakeCompletions::TakeEvent(ibv_comp_channel* channel) {
  auto& events = static_cast<FakeCompChannel*>(channel)->events;
  if (events.empty()) return nullptr;
  FakeCq* const cq = events.front();
  events.pop_front();
  ++cq->unacked;
  return cq;
}

void FakeCompletions::Ack(ibv_cq* cq, unsigned int count) {
  if (!ledger_->IsAlive("ibv_cq", cq)) return;
  auto* const own = static_cast<FakeCq*>(cq);
  if (count > own->unacked) {
    ledger_->Misused("ibv_ack_cq_events of more events than were got");
    count = static_cast<unsigned int>(own->unacked);
  }
  own->unacked -= count;
  cq->comp_events_completed += count;
}

void FakeCompletions::Add(ibv_cq* cq, const FakeCompletion& completion,
                          bool solicited) {
  auto* const own = static_cast<FakeCq*>(cq);
  if (own->completions.size() >= static_cast<size_t>(cq->cqe)) {
    if (!own->overflowed) {
      ledger_->Misused("a completion queue overflowed");
      decltype(ibv_async_event::element) element = {};
      element.cq = cq;
      devices_->Report(cq->context, IBV_EVENT_CQ_ERR, element);
    }
    own->overflowed = true;
    return;
  }
  own->completions.push_back(completion);
  const bool counts = solicited || !own->solicited_only ||
                      completion.wc.status != IBV_WC_SUCCESS;
  if (!own->armed || !counts || cq->channel == nullptr) return;
  own->armed = false;
  auto* const channel = static_cast<FakeCompChannel*>(cq->channel);
  channel->events.push_back(own);
  channel->signal.Signal();
}

std::vector<FakeCompletion> FakeCompletions::Poll(ibv_cq* cq, int entries) {
  auto& completions = static_cast<FakeCq*>(cq)->completions;
  const size_t count =
      std::min(completions.size(), static_cast<size_t>(std::max(entries, 0)));
  std::vector<FakeCompletion> taken(completions.begin(),
                                    completions.begin() + count);
  completions.erase(completions.begin(), completions.begin() + count);
  return taken;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
