#include "transport/fabric/verbs/gpu_trial.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "transport/base/steady_time.h"
#include "transport/fabric/verbs/loopback_pair.h"
#include "transport/fabric/verbs/pool.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr size_t kReadBytes = 64;
constexpr int kCompletions = 16;

uint64_t AddressOf(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

// Writes to `out` bytes that all differ from `bytes`. A READ that has no effect
// is then detected.
void Invert(const uint8_t* bytes, size_t size, uint8_t* out) {
  std::transform(bytes, bytes + size, out,
                 [](uint8_t byte) { return static_cast<uint8_t>(~byte); });
}

// A trial and its resources. Members are destroyed from the last to the first.
// The window must be destroyed before the pair through which it is bound.
class Trial {
 public:
  Trial(Api* api, absl::Time deadline) : api_(api), deadline_(deadline) {}

  // Makes the queue pairs, and a region that allows `access` on the trial's own
  // memory.
  absl::Status Prepare(const std::shared_ptr<const ProtectionDomain>& domain,
                       uint8_t port, int access);
  absl::Status Bind(const std::shared_ptr<const ProtectionDomain>& domain,
                    ibv_mr* region, const memory::Bytes& bytes);
  // Return OK if the first and last of `bytes` arrive through the window, or by
  // the key of `region`.
  absl::Status ReadByWindow(const memory::Bytes& bytes) {
    return ReadEnds(bytes, AddressOf(bytes.data), window_->rkey);
  }
  absl::Status ReadByKey(const ibv_mr& region, const memory::Bytes& bytes) {
    return ReadEnds(bytes, AddressOf(region.addr), region.rkey);
  }
  // Returns OK if a READ changes `into` to other bytes. Restores the old bytes.
  absl::Status ReadInto(ibv_mr* region, absl::Span<uint8_t> into,
                        memory::DeviceAccess* gpu);

 private:
  absl::Status ReadEnds(const memory::Bytes& bytes, uint64_t address,
                        uint32_t rkey);
  // Returns OK if these bytes, at most kReadBytes, arrive.
  absl::Status ReadFrom(const memory::Bytes& bytes, uint64_t address,
                        uint32_t rkey);
  absl::Status Read(const ibv_sge& into, uint64_t from, uint32_t rkey,
                    const char* what);

  Api* const api_;
  const absl::Time deadline_;
  CompletionQueue queue_;
  std::shared_ptr<PoolLease> memory_;
  std::unique_ptr<LoopbackPair> pair_;
  MemoryWindow window_;
};

absl::Status Trial::Prepare(
    const std::shared_ptr<const ProtectionDomain>& domain, uint8_t port,
    int access) {
  ibv_context* const device = domain->get()->context;
  absl::StatusOr<LoopbackRoute> route = FindLoopback(api_, device, port);
  if (!route.ok()) return route.status();
  absl::StatusOr<CompletionQueue> queue =
      CreateCq(api_, device, kCompletions, nullptr);
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  absl::StatusOr<std::shared_ptr<PoolLease>> memory =
      Pool::Create(api_, domain, access, kReadBytes)->Allocate(kReadBytes);
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  absl::StatusOr<LoopbackPair> pair =
      LoopbackPair::Create(api_, domain->get(), queue_.get(), *route);
  if (!pair.ok()) return pair.status();
  pair_ = std::make_unique<LoopbackPair>(*std::move(pair));
  return absl::OkStatus();
}

absl::Status Trial::Bind(const std::shared_ptr<const ProtectionDomain>& domain,
                         ibv_mr* region, const memory::Bytes& bytes) {
  absl::StatusOr<MemoryWindow> window = AllocWindow(api_, domain->get());
  if (!window.ok()) return window.status();
  window_ = *std::move(window);
  ibv_send_wr request = {};
  request.opcode = IBV_WR_BIND_MW;
  request.bind_mw.mw = window_.get();
  request.bind_mw.rkey = ibv_inc_rkey(window_->rkey);
  request.bind_mw.bind_info.mr = region;
  request.bind_mw.bind_info.addr = AddressOf(bytes.data);
  request.bind_mw.bind_info.length = bytes.size;
  request.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
  const absl::StatusOr<ibv_wc_status> done =
      DoRequest(api_, pair_->owner(), request, deadline_);
  if (!done.ok()) {
    return absl::UnavailableError(absl::StrCat("no window can be bound to it: ",
                                               done.status().message()));
  }
  window_->rkey = request.bind_mw.rkey;
  if (*done == IBV_WC_SUCCESS) return absl::OkStatus();
  return absl::UnavailableError("no window can be bound to it");
}

absl::Status Trial::Read(const ibv_sge& into, uint64_t from, uint32_t rkey,
                         const char* what) {
  ibv_sge part = into;
  ibv_send_wr request = {};
  request.opcode = IBV_WR_RDMA_READ;
  request.sg_list = &part;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = from;
  request.wr.rdma.rkey = rkey;
  const absl::StatusOr<ibv_wc_status> done =
      DoRequest(api_, pair_->reader(), request, deadline_);
  if (!done.ok()) return done.status();
  if (*done == IBV_WC_SUCCESS) return absl::OkStatus();
  return absl::UnavailableError(what);
}

absl::Status Trial::ReadEnds(const memory::Bytes& bytes, uint64_t address,
                             uint32_t rkey) {
  const size_t size = std::min(kReadBytes, bytes.size);
  const size_t last = bytes.size - size;
  absl::Status status = ReadFrom(bytes.Part(0, size), address, rkey);
  if (!status.ok()) return status;
  return ReadFrom(bytes.Part(last, size), address + last, rkey);
}

absl::Status Trial::ReadFrom(const memory::Bytes& bytes, uint64_t address,
                             uint32_t rkey) {
  uint8_t expected[kReadBytes];
  absl::Status status = bytes.CopyTo(expected);
  if (!status.ok()) return status;
  Invert(expected, bytes.size, memory_->data());
  const ibv_sge into = {AddressOf(memory_->data()),
                        static_cast<uint32_t>(bytes.size), memory_->lkey()};
  status = Read(into, address, rkey, "it cannot be read");
  if (!status.ok()) return status;
  if (std::memcmp(memory_->data(), expected, bytes.size) == 0) {
    return absl::OkStatus();
  }
  return absl::DataLossError("the wrong bytes are read");
}

absl::Status Trial::ReadInto(ibv_mr* region, absl::Span<uint8_t> into,
                             memory::DeviceAccess* gpu) {
  uint8_t before[kReadBytes];
  absl::Status status = gpu->CopyToHost(into, before);
  if (!status.ok()) return status;
  Invert(before, into.size(), memory_->data());
  const ibv_sge part = {AddressOf(into.data()),
                        static_cast<uint32_t>(into.size()), region->lkey};
  status = Read(part, AddressOf(memory_->data()), memory_->region()->rkey,
                "it cannot be read into");
  uint8_t after[kReadBytes];
  if (status.ok()) status = gpu->FlushWrites(into);
  if (status.ok()) status = gpu->CopyToHost(into, after);
  if (!status.ok()) pair_.reset();  // no late write may arrive
  absl::Status restored =
      gpu->CopyFromHost(absl::MakeConstSpan(before, into.size()), into.data());
  if (!status.ok()) return status;
  if (std::memcmp(memory_->data(), after, into.size()) != 0) {
    return absl::DataLossError("bytes that are read into it do not arrive");
  }
  return restored;
}

}  // namespace

absl::Status TryGpuWindow(Api* api,
                          const std::shared_ptr<const ProtectionDomain>& domain,
                          uint8_t port, ibv_mr* region,
                          const memory::Bytes& bytes, absl::Duration limit) {
  Trial trial(api, base::SteadyNow() + limit);
  absl::Status status = trial.Prepare(domain, port, IBV_ACCESS_LOCAL_WRITE);
  if (status.ok()) status = trial.Bind(domain, region, bytes);
  if (status.ok()) status = trial.ReadByWindow(bytes);
  return status;
}

absl::Status TryGpuKey(Api* api,
                       const std::shared_ptr<const ProtectionDomain>& domain,
                       uint8_t port, ibv_mr* region, const memory::Bytes& bytes,
                       absl::Duration limit) {
  Trial trial(api, base::SteadyNow() + limit);
  absl::Status status = trial.Prepare(domain, port, IBV_ACCESS_LOCAL_WRITE);
  if (status.ok()) status = trial.ReadByKey(*region, bytes);
  return status;
}

absl::Status TryGpuLanding(
    Api* api, const std::shared_ptr<const ProtectionDomain>& domain,
    uint8_t port, ibv_mr* region, const memory::Destination& into,
    absl::Duration limit) {
  Trial trial(api, base::SteadyNow() + limit);
  // Permits remote READs although peers could then read the trial's own bytes,
  // because these bytes are meaningless.
  absl::Status status = trial.Prepare(
      domain, port, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  const absl::Span<uint8_t> all(into.data, into.size);
  const size_t size = std::min(kReadBytes, into.size);
  if (status.ok()) {
    status = trial.ReadInto(region, all.first(size), into.device);
  }
  if (status.ok()) {
    status = trial.ReadInto(region, all.last(size), into.device);
  }
  return status;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
