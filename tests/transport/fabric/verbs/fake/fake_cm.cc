#include "tests/transport/fabric/verbs/fake/fake_cm.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr uint16_t kFirstFreePort = 32768;

size_t SizeOf(const sockaddr* address) {
  return address->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                        : sizeof(sockaddr_in);
}

// Returns the port of an address. Both address families have the port in the
// same place.
uint16_t PortOf(const sockaddr* address) {
  return reinterpret_cast<const sockaddr_in*>(address)->sin_port;
}

void SetPort(sockaddr* address, uint16_t port) {
  reinterpret_cast<sockaddr_in*>(address)->sin_port = port;
}

bool IsWildcard(const sockaddr* address) {
  if (address->sa_family == AF_INET6) {
    return IN6_IS_ADDR_UNSPECIFIED(
        &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  }
  return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == 0;
}

bool IsInternet(const sockaddr* address) {
  return address->sa_family == AF_INET || address->sa_family == AF_INET6;
}

}  // namespace

FakeCm::~FakeCm() {
  for (const auto& entry : ids_) delete entry.second;
}

FakeId* FakeCm::Find(uint64_t serial) const {
  const auto found = ids_.find(serial);
  return found == ids_.end() ? nullptr : found->second;
}

int FakeCm::CountIds() const {
  int count = 0;
  for (const auto& entry : ids_) count += entry.second->handed_out;
  return count;
}

int FakeCm::CreateId(rdma_event_channel* channel, rdma_cm_id** made,
                     void* context, rdma_port_space space) {
  if (!network_->ledger.IsAlive("rdma_event_channel", channel)) return EINVAL;
  if (space != RDMA_PS_TCP) return EOPNOTSUPP;
  auto* const id = new FakeId();
  id->serial = ++last_serial_;
  id->channel = channel;
  id->context = context;
  id->ps = space;
  id->qp_type = IBV_QPT_RC;
  ids_[id->serial] = id;
  ++static_cast<FakeEventChannel*>(channel)->ids;
  network_->ledger.Made("rdma_cm_id", id);
  *made = id;
  return 0;
}

bool FakeCm::AwaitsAck(const rdma_cm_id* id, std::thread::id destroyer) const {
  for (const auto& entry : ids_) {
    const FakeId& own = *entry.second;
    if (&own == id) return own.unacked > 0 && own.taker != destroyer;
  }
  return false;
}

int FakeCm::DestroyId(rdma_cm_id* id) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return EINVAL;
  auto* const own = static_cast<FakeId*>(id);
  if (own->unacked > 0) {
    network_->ledger.Misused(
        "rdma_destroy_id with unacknowledged events hangs");
  }
  if (id->qp != nullptr) {
    network_->ledger.Misused("rdma_destroy_id before its queue pair");
    DestroyQp(id);
  }
  if (own->state == FakeIdState::kListening) EndRequestsOf(*own);
  if (own->state == FakeIdState::kRequested) {
    RefuseRequest(own->peer, own->device, /*reason=*/28);
  }
  // Refuses with the reason "timeout" (4), which the kernel reports when a side
  // gives up.
  if (own->state == FakeIdState::kConnecting) {
    RefuseRequest(own->peer, own->device, /*reason=*/4);
  }
  if (own->state == FakeIdState::kConnected ||
      own->state == FakeIdState::kAccepted) {
    SayGoodbye(own);
  }
  ForgetEvents(own, id);
  --static_cast<FakeEventChannel*>(id->channel)->ids;
  ids_.erase(own->serial);
  network_->ledger.Ended(id);
  delete own;
  return 0;
}

void FakeCm::EndRequestsOf(const FakeId& listener) {
  std::vector<FakeId*> waiting;
  for (const auto& entry : ids_) {
    FakeId* const id = entry.second;
    if (id->listener == listener.serial && !id->handed_out) {
      waiting.push_back(id);
    }
  }
  for (FakeId* const id : waiting) {
    RefuseRequest(id->peer, id->device, /*reason=*/28);
    --static_cast<FakeEventChannel*>(id->channel)->ids;
    ids_.erase(id->serial);
    ForgetEvents(nullptr, id);
    delete id;
  }
}

void FakeCm::Attach(FakeId* id, FakeDevice* device) {
  id->device = device;
  id->verbs = device;
  id->port_num = 1;
}

bool FakeCm::PortIsTaken(const FakeId& id, const sockaddr* address) const {
  for (const auto& entry : ids_) {
    const FakeId& other = *entry.second;
    const sockaddr* const its = &other.route.addr.src_addr;
    if (&other == &id || !IsInternet(its) || other.listener != 0 ||
        PortOf(its) != PortOf(address)) {
      continue;
    }
    const bool overlaps =
        IsWildcard(its) || IsWildcard(address) || SameHost(its, address);
    const bool shared = id.reuse_addr && other.reuse_addr &&
                        other.state != FakeIdState::kListening;
    if (overlaps && !shared) return true;
  }
  return false;
}

uint16_t FakeCm::FreePort() const {
  uint16_t port = kFirstFreePort;
  const auto taken = [&](const auto& entry) {
    const sockaddr* const its = &entry.second->route.addr.src_addr;
    return IsInternet(its) && PortOf(its) == htons(port);
  };
  while (std::any_of(ids_.begin(), ids_.end(), taken)) ++port;
  return htons(port);
}

int FakeCm::Bind(rdma_cm_id* id, const sockaddr* address) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return EINVAL;
  auto* const own = static_cast<FakeId*>(id);
  if (own->state != FakeIdState::kIdle || !IsInternet(address)) return EINVAL;
  FakeDevice* const device = network_->devices.FindByAddress(address);
  if (device == nullptr && !IsWildcard(address)) return ENODEV;
  if (PortOf(address) != 0 && PortIsTaken(*own, address)) return EADDRINUSE;
  const uint16_t port = PortOf(address) == 0 ? FreePort() : PortOf(address);
  std::memcpy(&id->route.addr.src_storage, address, SizeOf(address));
  SetPort(&id->route.addr.src_addr, port);
  if (device != nullptr) Attach(own, device);
  own->state = FakeIdState::kBound;
  return 0;
}

int FakeCm::SetOption(rdma_cm_id* id, int level, int name, const void* value,
                      size_t length) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return EINVAL;
  if (level != RDMA_OPTION_ID) return ENOSYS;
  switch (name) {
    case RDMA_OPTION_ID_TOS:
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      return length == sizeof(uint8_t) ? 0 : EINVAL;
    case RDMA_OPTION_ID_REUSEADDR:
      if (length != sizeof(int)) return EINVAL;
      static_cast<FakeId*>(id)->reuse_addr =
          *static_cast<const int*>(value) != 0;
      return 0;
    case RDMA_OPTION_ID_AFONLY:
      return length == sizeof(int) ? 0 : EINVAL;
    default:
      return ENOSYS;
  }
}

int FakeCm::Listen(rdma_cm_id* id, int backlog) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return EINVAL;
  auto* const own = static_cast<FakeId*>(id);
  if (own->state != FakeIdState::kBound) return EINVAL;
  if (PortIsTaken(*own, &id->route.addr.src_addr)) return EADDRINUSE;
  constexpr int kMaxBacklog = 1024;
  own->backlog = backlog > 0 ? std::min(backlog, kMaxBacklog) : kMaxBacklog;
  own->state = FakeIdState::kListening;
  return 0;
}

FakeId* FakeCm::FindListener(const sockaddr* address) const {
  for (const auto& entry : ids_) {
    FakeId* const id = entry.second;
    const sockaddr* const own = &id->route.addr.src_addr;
    if (id->state != FakeIdState::kListening ||
        PortOf(own) != PortOf(address)) {
      continue;
    }
    const bool takes_all = IsWildcard(own) && (own->sa_family == AF_INET6 ||
                                               address->sa_family == AF_INET);
    if (takes_all || SameHost(own, address)) return id;
  }
  return nullptr;
}

int FakeCm::ResolveAddr(rdma_cm_id* id, const sockaddr* source,
                        const sockaddr* destination) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return EINVAL;
  auto* const own = static_cast<FakeId*>(id);
  if (!IsInternet(destination)) return EINVAL;
  if (own->state == FakeIdState::kIdle && source != nullptr) {
    if (source->sa_family != destination->sa_family) return EINVAL;
    const int error_number = Bind(id, source);
    if (error_number != 0) return error_number;
  }
  if (own->state != FakeIdState::kIdle && own->state != FakeIdState::kBound) {
    return EINVAL;
  }
  std::memcpy(&id->route.addr.dst_storage, destination, SizeOf(destination));
  own->state = FakeIdState::kAddrQuery;
  FakeDevice* const target = network_->devices.FindByAddress(destination);
  // Chooses the destination's own device if there is no source and the
  // destination is local, as Linux does.
  FakeDevice* const from = own->device != nullptr ? own->device : target;
  if (target == nullptr) {
    own->state = FakeIdState::kBound;
    Report(own, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
    return 0;
  }
  network_->Send(from, from, [this, serial = own->serial, from] {
    FakeId* const id = Find(serial);
    if (id == nullptr) return;
    id->state = FakeIdState::kAddrResolved;
    Report(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, [this, id, from] {
      if (id->device != nullptr) return;
      const uint16_t port = FreePort();
      id->route.addr.src_storage = id->route.addr.dst_storage;
      SetPort(&id->route.addr.src_addr, port);
      Attach(id, from);
    });
  });
  return 0;
}

int FakeCm::ResolveRoute(rdma_cm_id* id) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return EINVAL;
  auto* const own = static_cast<FakeId*>(id);
  if (own->state != FakeIdState::kAddrResolved || own->device == nullptr) {
    return EINVAL;
  }
  own->state = FakeIdState::kRouteQuery;
  network_->Send(own->device, own->device, [this, serial = own->serial] {
    FakeId* const id = Find(serial);
    if (id == nullptr) return;
    id->state = FakeIdState::kRouteResolved;
    Report(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
  });
  return 0;
}

int FakeCm::CreateQp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return EINVAL;
  if (id->verbs == nullptr || id->qp != nullptr) return EINVAL;
  if (pd == nullptr || pd->context != id->verbs) return EINVAL;
  FakeQp* qp = nullptr;
  const int error_number = network_->queue_pairs.Create(pd, attr, &qp);
  if (error_number != 0) return error_number;
  id->qp = qp;
  id->pd = pd;
  id->send_cq = qp->send_cq;
  id->recv_cq = qp->recv_cq;
  id->srq = qp->srq;
  return 0;
}

void FakeCm::DestroyQp(rdma_cm_id* id) {
  if (!network_->ledger.IsAlive("rdma_cm_id", id)) return;
  if (id->qp == nullptr) {
    network_->ledger.Misused("rdma_destroy_qp without a queue pair");
    return;
  }
  network_->queue_pairs.Destroy(static_cast<FakeQp*>(id->qp));
  id->qp = nullptr;
}

void FakeCm::RemoveDevice(FakeDevice* device) {
  device->removed = true;
  for (const auto& entry : network_->queue_pairs.all()) {
    if (entry.second->context == device) {
      network_->queue_pairs.Break(entry.second);
    }
  }
  network_->devices.Report(device, IBV_EVENT_DEVICE_FATAL);
  for (const auto& entry : ids_) {
    if (entry.second->device != device || !entry.second->handed_out) continue;
    Report(entry.second, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
  }
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
