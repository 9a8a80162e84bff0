#include "transport/fabric/verbs/window_trial.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/steady_time.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/loopback_pair.h"
#include "transport/fabric/verbs/pool.h"
#include "transport/fabric/verbs/status.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// The size of half of the trial's region, in bytes. The window is in the middle
// of the first half, and begins and ends within a page. A device that checks
// only whole pages therefore fails. READs write to the second half.
constexpr uint64_t kHalf = 8192;
constexpr uint64_t kWindowAt = 1024;
constexpr uint64_t kWindowBytes = 2048;
constexpr uint32_t kReadBytes = 64;
constexpr int kCompletions = 16;

uint8_t PatternAt(uint64_t offset) {
  return static_cast<uint8_t>(offset * 31 + offset / 256 + 7);
}

// The objects that all tests of one trial share. Members are destroyed from the
// last to the first: the pairs of a test, then the members here. A window is
// destroyed before the pair through which it is bound.
class Trial {
 public:
  Trial(Api* api, absl::Time deadline) : api_(api), deadline_(deadline) {}

  absl::Status Prepare(ibv_context* device, uint8_t port);
  // Returns OK if the device passes. If `rule` tolerates the error, returns OK
  // and reports the error in `trust`. Otherwise returns the error.
  absl::Status TryRange(RangeRule rule, WindowTrust* trust);
  absl::Status TryInvalidation();
  absl::Status TryOtherKeys();

 private:
  absl::StatusOr<LoopbackPair> NewPair() {
    return LoopbackPair::Create(api_, domain_->get(), queue_.get(), route_);
  }
  // Returns a window on the middle of the memory, through which a READ has
  // returned the right bytes.
  absl::StatusOr<MemoryWindow> Open(const LoopbackPair& pair);
  absl::Status Bind(ibv_qp* qp, ibv_mw* window);
  absl::Status Invalidate(ibv_qp* qp, ibv_mw* window);
  // Returns OK if the bytes at `offset` arrive.
  absl::Status Read(ibv_qp* qp, uint64_t offset, uint32_t rkey);
  // Makes a READ that the device must refuse. Returns OK if the device refuses
  // it, or else an error with `what`.
  absl::Status ReadInVain(ibv_qp* qp, uint64_t offset, uint32_t rkey,
                          const char* what);
  absl::StatusOr<ibv_wc_status> DoRead(ibv_qp* qp, uint64_t offset,
                                       uint32_t rkey);
  uint8_t* At(uint64_t offset) const { return memory_->data() + offset; }
  uint64_t AddressOf(uint64_t offset) const {
    return reinterpret_cast<uintptr_t>(At(offset));
  }

  Api* const api_;
  const absl::Time deadline_;
  LoopbackRoute route_;
  std::shared_ptr<const ProtectionDomain> domain_;
  CompletionQueue queue_;
  std::shared_ptr<PoolLease> memory_;
};

absl::Status Trial::Prepare(ibv_context* device, uint8_t port) {
  absl::StatusOr<LoopbackRoute> route = FindLoopback(api_, device, port);
  if (!route.ok()) return route.status();
  route_ = *route;
  absl::StatusOr<ProtectionDomain> domain = AllocPd(api_, device);
  if (!domain.ok()) return domain.status();
  domain_ = std::make_shared<const ProtectionDomain>(*std::move(domain));
  absl::StatusOr<CompletionQueue> queue =
      CreateCq(api_, device, kCompletions, nullptr);
  if (!queue.ok()) return queue.status();
  queue_ = *std::move(queue);
  absl::StatusOr<std::shared_ptr<PoolLease>> memory =
      Pool::Create(api_, domain_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
                   2 * kHalf)
          ->Allocate(2 * kHalf);
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  for (uint64_t i = 0; i < kHalf; ++i) *At(i) = PatternAt(i);
  return absl::OkStatus();
}

absl::StatusOr<MemoryWindow> Trial::Open(const LoopbackPair& pair) {
  absl::StatusOr<MemoryWindow> window = AllocWindow(api_, domain_->get());
  if (!window.ok()) return window;
  absl::Status status = Bind(pair.owner(), window->get());
  if (status.ok()) status = Read(pair.reader(), kWindowAt, (*window)->rkey);
  if (!status.ok()) return status;
  return window;
}

absl::Status Trial::Bind(ibv_qp* qp, ibv_mw* window) {
  ibv_send_wr request = {};
  request.opcode = IBV_WR_BIND_MW;
  request.bind_mw.mw = window;
  request.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  request.bind_mw.bind_info.mr = memory_->region();
  request.bind_mw.bind_info.addr = AddressOf(kWindowAt);
  request.bind_mw.bind_info.length = kWindowBytes;
  request.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
  const absl::StatusOr<ibv_wc_status> done =
      DoRequest(api_, qp, request, deadline_);
  if (!done.ok()) return done.status();
  window->rkey = request.bind_mw.rkey;
  if (*done == IBV_WC_SUCCESS) return absl::OkStatus();
  return absl::UnavailableError("windows cannot be bound");
}

absl::Status Trial::Invalidate(ibv_qp* qp, ibv_mw* window) {
  ibv_send_wr request = {};
  request.opcode = IBV_WR_LOCAL_INV;
  request.invalidate_rkey = window->rkey;
  const absl::StatusOr<ibv_wc_status> done =
      DoRequest(api_, qp, request, deadline_);
  if (!done.ok()) return done.status();
  if (*done == IBV_WC_SUCCESS) return absl::OkStatus();
  return absl::UnavailableError("windows cannot be invalidated");
}

absl::StatusOr<ibv_wc_status> Trial::DoRead(ibv_qp* qp, uint64_t offset,
                                            uint32_t rkey) {
  std::fill(At(kHalf), At(2 * kHalf), uint8_t{0});
  ibv_sge into = {};
  into.addr = AddressOf(kHalf);
  into.length = kReadBytes;
  into.lkey = memory_->lkey();
  ibv_send_wr request = {};
  request.opcode = IBV_WR_RDMA_READ;
  request.sg_list = &into;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = AddressOf(offset);
  request.wr.rdma.rkey = rkey;
  return DoRequest(api_, qp, request, deadline_);
}

absl::Status Trial::Read(ibv_qp* qp, uint64_t offset, uint32_t rkey) {
  const absl::StatusOr<ibv_wc_status> done = DoRead(qp, offset, rkey);
  if (!done.ok()) return done.status();
  for (uint32_t i = 0; *done == IBV_WC_SUCCESS && i < kReadBytes; ++i) {
    if (*At(kHalf + i) == PatternAt(offset + i)) continue;
    return absl::DataLossError("windows give the wrong bytes");
  }
  if (*done == IBV_WC_SUCCESS) return absl::OkStatus();
  return absl::UnavailableError("windows cannot be read");
}

absl::Status Trial::ReadInVain(ibv_qp* qp, uint64_t offset, uint32_t rkey,
                               const char* what) {
  const absl::StatusOr<ibv_wc_status> done = DoRead(qp, offset, rkey);
  if (!done.ok()) return done.status();
  if (*done == IBV_WC_SUCCESS) return absl::PermissionDeniedError(what);
  // Accepts only a refusal by the owner's side. Any other failure proves
  // nothing.
  if (*done == IBV_WC_REM_ACCESS_ERR) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("a forbidden read ended with status ", int{*done}));
}

absl::Status Trial::TryRange(RangeRule rule, WindowTrust* trust) {
  absl::StatusOr<LoopbackPair> pair = NewPair();
  if (!pair.ok()) return pair.status();
  absl::StatusOr<MemoryWindow> window = Open(*pair);
  if (!window.ok()) return window.status();
  // Reads the last bytes of the range and the first bytes after it.
  absl::Status refused =
      ReadInVain(pair->reader(), kWindowAt + kWindowBytes - kReadBytes / 2,
                 (*window)->rkey, "reads reach beyond a window");
  if (!absl::IsPermissionDenied(refused) || rule == RangeRule::kEnforced) {
    return refused;
  }
  *trust = WindowTrust::kAllButRange;
  return absl::OkStatus();
}

absl::Status Trial::TryInvalidation() {
  absl::StatusOr<LoopbackPair> pair = NewPair();
  if (!pair.ok()) return pair.status();
  absl::StatusOr<MemoryWindow> window = Open(*pair);
  if (!window.ok()) return window.status();
  absl::Status ended = Invalidate(pair->owner(), window->get());
  if (!ended.ok()) return ended;
  return ReadInVain(pair->reader(), kWindowAt, (*window)->rkey,
                    "windows can be read after their invalidation");
}

absl::Status Trial::TryOtherKeys() {
  absl::StatusOr<LoopbackPair> pair = NewPair();
  if (!pair.ok()) return pair.status();
  absl::StatusOr<LoopbackPair> other = NewPair();
  if (!other.ok()) return other.status();
  absl::StatusOr<MemoryWindow> window = Open(*pair);
  if (!window.ok()) return window.status();
  absl::Status refused =
      ReadInVain(other->reader(), kWindowAt, (*window)->rkey,
                 "windows can be read through other queue pairs");
  if (!refused.ok()) return refused;
  return ReadInVain(pair->reader(), kWindowAt, memory_->region()->rkey,
                    "regions can be read without a window");
}

}  // namespace

absl::StatusOr<WindowTrust> TryWindows(Api* api, ibv_context* device,
                                       uint8_t port, absl::Duration limit,
                                       RangeRule rule) {
  ibv_device_attr attr = {};
  const int error = api->QueryDevice(device, &attr);
  if (error != 0) return CallFailed(api, error, "query", device);
  constexpr unsigned int kType2 =
      IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  if ((attr.device_cap_flags & kType2) == 0) {
    return absl::UnimplementedError("no memory windows of type 2");
  }
  Trial trial(api, base::SteadyNow() + limit);
  WindowTrust trust = WindowTrust::kAll;
  absl::Status status = trial.Prepare(device, port);
  if (status.ok()) status = trial.TryRange(rule, &trust);
  if (status.ok()) status = trial.TryInvalidation();
  if (status.ok()) status = trial.TryOtherKeys();
  if (!status.ok()) return status;
  return trust;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
