#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/transport/fabric/verbs/fake/fake_cm.h"
#include "tests/transport/fabric/verbs/fake/fake_network.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Returns the result of an rdma_* function: 0, or -1 and errno.
int Rdma(int error_number) {
  if (error_number == 0) return 0;
  errno = error_number;
  return -1;
}

}  // namespace

FakeVerbs::FakeVerbs(NetworkOptions options)
    : network_(std::make_unique<FakeNetwork>(options)),
      cm_(std::make_unique<FakeCm>(network_.get())) {}

FakeVerbs::~FakeVerbs() = default;

ibv_context* FakeVerbs::AddDevice(DeviceOptions options) {
  std::unique_lock<std::mutex> lock(mu_);
  return network_->devices.Add(std::move(options));
}

ibv_context* FakeVerbs::context(absl::string_view device) {
  std::unique_lock<std::mutex> lock(mu_);
  return network_->devices.Find(device);
}

void FakeVerbs::Hold() {
  std::unique_lock<std::mutex> lock(mu_);
  network_->held = true;
}

bool FakeVerbs::Step() {
  std::unique_lock<std::mutex> lock(mu_);
  return network_->Step();
}

void FakeVerbs::Release() {
  std::unique_lock<std::mutex> lock(mu_);
  network_->held = false;
  network_->Run();
}

void FakeVerbs::FailNext(Call call, int error_number, int after) {
  std::unique_lock<std::mutex> lock(mu_);
  network_->faults.FailNext(call, error_number, after);
}

size_t FakeVerbs::failures_to_come() {
  std::unique_lock<std::mutex> lock(mu_);
  return network_->faults.failures_to_come();
}

void FakeVerbs::CompleteNext(ibv_wr_opcode opcode, ibv_wc_status status) {
  std::unique_lock<std::mutex> lock(mu_);
  network_->faults.CompleteNext(opcode, status);
}

void FakeVerbs::CutLink(absl::string_view a, absl::string_view b) {
  std::unique_lock<std::mutex> lock(mu_);
  network_->faults.Cut(network_->devices.Find(a), network_->devices.Find(b));
}

void FakeVerbs::RestoreLink(absl::string_view a, absl::string_view b) {
  std::unique_lock<std::mutex> lock(mu_);
  network_->faults.Restore(network_->devices.Find(a),
                           network_->devices.Find(b));
  network_->Run();
}

void FakeVerbs::RemoveDevice(absl::string_view device) {
  std::unique_lock<std::mutex> lock(mu_);
  cm_->RemoveDevice(network_->devices.Find(device));
  network_->Run();
}

void FakeVerbs::ReplacePages(const void* address, size_t length) {
  std::unique_lock<std::mutex> lock(mu_);
  network_->memory.ReplacePages(reinterpret_cast<uint64_t>(address), length);
}

const void* FakeVerbs::Find(const ibv_mr& region, const void* address) {
  std::unique_lock<std::mutex> lock(mu_);
  const ibv_sge part = {reinterpret_cast<uint64_t>(address), 1, region.lkey};
  return network_->memory.Local(region.pd, part, /*for_writing=*/false);
}

void FakeVerbs::PortDown(absl::string_view device) {
  std::unique_lock<std::mutex> lock(mu_);
  FakeDevice* const found = network_->devices.Find(device);
  found->port_up = false;
  decltype(ibv_async_event::element) element = {};
  element.port_num = 1;
  network_->devices.Report(found, IBV_EVENT_PORT_ERR, element);
}

void FakeVerbs::PortUp(absl::string_view device) {
  std::unique_lock<std::mutex> lock(mu_);
  FakeDevice* const found = network_->devices.Find(device);
  found->port_up = true;
  decltype(ibv_async_event::element) element = {};
  element.port_num = 1;
  network_->devices.Report(found, IBV_EVENT_PORT_ACTIVE, element);
  network_->Run();
}

Counts FakeVerbs::counts() {
  std::unique_lock<std::mutex> lock(mu_);
  const FakeLedger& ledger = network_->ledger;
  Counts counts;
  counts.pds = ledger.CountOf("ibv_pd");
  counts.mrs = ledger.CountOf("ibv_mr");
  counts.mws = ledger.CountOf("ibv_mw");
  counts.comp_channels = ledger.CountOf("ibv_comp_channel");
  counts.cqs = ledger.CountOf("ibv_cq");
  counts.srqs = ledger.CountOf("ibv_srq");
  counts.qps = ledger.CountOf("ibv_qp");
  counts.event_channels = ledger.CountOf("rdma_event_channel");
  counts.ids = ledger.CountOf("rdma_cm_id");
  counts.bound_mws = network_->memory.CountBound();
  for (const auto& device : network_->devices.all()) {
    counts.registered_bytes += device->registered_bytes;
  }
  return counts;
}

std::vector<std::string> FakeVerbs::misuse() {
  std::unique_lock<std::mutex> lock(mu_);
  return network_->ledger.misuse();
}

std::vector<std::string> FakeVerbs::leaks() {
  std::unique_lock<std::mutex> lock(mu_);
  std::vector<std::string> lines = network_->ledger.Living();
  for (const std::string& line : network_->ledger.misuse()) {
    lines.push_back(line);
  }
  return lines;
}

int FakeVerbs::Fault(Call call) { return network_->faults.TakeFailure(call); }

int FakeVerbs::Ran(int result) {
  network_->Run();
  return result;
}

// The functions below are the connection manager's.

rdma_event_channel* FakeVerbs::CreateEventChannel() {
  std::unique_lock<std::mutex> lock(mu_);
  rdma_event_channel* made = nullptr;
  int error_number = Fault(Call::kCreateEventChannel);
  if (error_number == 0) error_number = cm_->CreateChannel(&made);
  if (error_number != 0) errno = error_number;
  return made;
}

void FakeVerbs::DestroyEventChannel(rdma_event_channel* channel) {
  std::unique_lock<std::mutex> lock(mu_);
  cm_->DestroyChannel(channel);
}

int FakeVerbs::GetCmEvent(rdma_event_channel* channel, rdma_cm_event** event) {
  {
    std::unique_lock<std::mutex> lock(mu_);
    if (const int fault = Fault(Call::kGetCmEvent)) return Rdma(fault);
  }
  while (FakeEventFd::Take(channel->fd)) {
    std::unique_lock<std::mutex> lock(mu_);
    if (cm_->TakeEvent(channel, event)) return Ran(0);
  }
  return -1;
}

int FakeVerbs::AckCmEvent(rdma_cm_event* event) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kAckCmEvent)) return Rdma(fault);
  const int acked = cm_->Ack(event);
  acknowledged_.notify_all();
  return Rdma(acked);
}

int FakeVerbs::CreateId(rdma_event_channel* channel, rdma_cm_id** id,
                        void* context, rdma_port_space space) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kCreateId)) return Rdma(fault);
  return Rdma(cm_->CreateId(channel, id, context, space));
}

int FakeVerbs::DestroyId(rdma_cm_id* id) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kDestroyId)) return Rdma(fault);
  // Waits, as the library does, until other threads have acknowledged the
  // events that they took.
  const std::thread::id self = std::this_thread::get_id();
  const auto acknowledged = [this, id, self] {
    return !cm_->AwaitsAck(id, self);
  };
  (void)acknowledged_.wait_for(lock, std::chrono::seconds(10), acknowledged);
  return Ran(Rdma(cm_->DestroyId(id)));
}

int FakeVerbs::BindAddr(rdma_cm_id* id, sockaddr* address) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kBindAddr)) return Rdma(fault);
  return Rdma(cm_->Bind(id, address));
}

int FakeVerbs::SetOption(rdma_cm_id* id, int level, int name, void* value,
                         size_t length) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kSetOption)) return Rdma(fault);
  return Rdma(cm_->SetOption(id, level, name, value, length));
}

int FakeVerbs::Listen(rdma_cm_id* id, int backlog) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kListen)) return Rdma(fault);
  return Rdma(cm_->Listen(id, backlog));
}

uint16_t FakeVerbs::GetSrcPort(rdma_cm_id* id) {
  std::unique_lock<std::mutex> lock(mu_);
  if (Fault(Call::kGetSrcPort) != 0) return 0;
  return reinterpret_cast<sockaddr_in*>(&id->route.addr.src_addr)->sin_port;
}

int FakeVerbs::ResolveAddr(rdma_cm_id* id, sockaddr* source,
                           sockaddr* destination, int timeout_ms) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kResolveAddr)) return Rdma(fault);
  return Ran(Rdma(cm_->ResolveAddr(id, source, destination)));
}

int FakeVerbs::ResolveRoute(rdma_cm_id* id, int timeout_ms) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kResolveRoute)) return Rdma(fault);
  return Ran(Rdma(cm_->ResolveRoute(id)));
}

int FakeVerbs::CreateQp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kCreateQp)) return Rdma(fault);
  return Rdma(cm_->CreateQp(id, pd, attr));
}

void FakeVerbs::DestroyQp(rdma_cm_id* id) {
  std::unique_lock<std::mutex> lock(mu_);
  // Waits for acknowledgements, as DestroyId() does.
  const std::thread::id self = std::this_thread::get_id();
  const auto acknowledged = [this, id, self] {
    return !network_->queue_pairs.AwaitsAsyncAck(id->qp, self);
  };
  (void)acknowledged_.wait_for(lock, std::chrono::seconds(10), acknowledged);
  cm_->DestroyQp(id);
  network_->Run();
}

int FakeVerbs::Connect(rdma_cm_id* id, rdma_conn_param* param) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kConnect)) return Rdma(fault);
  return Ran(Rdma(cm_->Connect(id, param)));
}

int FakeVerbs::Accept(rdma_cm_id* id, rdma_conn_param* param) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kAccept)) return Rdma(fault);
  return Ran(Rdma(cm_->Accept(id, param)));
}

int FakeVerbs::Reject(rdma_cm_id* id, const void* data, uint8_t length) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kReject)) return Rdma(fault);
  return Ran(Rdma(cm_->Reject(id, data, length)));
}

int FakeVerbs::Disconnect(rdma_cm_id* id) {
  std::unique_lock<std::mutex> lock(mu_);
  if (const int fault = Fault(Call::kDisconnect)) return Rdma(fault);
  return Ran(Rdma(cm_->Disconnect(id)));
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
