#include "transport/fabric/verbs/cm_connection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/descriptors.h"
#include "transport/base/steady_time.h"
#include "transport/fabric/verbs/device.h"
#include "transport/fabric/verbs/formats/address.h"
#include "transport/fabric/verbs/status.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// The number of posted receives: twice the packets that usually arrive before a
// busy peer polls. Frames that wait at the sender share a packet.
constexpr uint16_t kReceives = 16;
// Limits the reads in flight. Half a MiB of reads keeps any link busy. Further
// reads would wait in the device, perhaps for longer than its acknowledgement
// timeout (Soft-RoCE: 30 MB/s).
constexpr int kMaxReads = 4;
// The limit of inline data, in bytes. Fits into a work request of the common
// adapters without a second cache line.
constexpr uint32_t kInlineBytes = 220;
// The capacity of the completion queue: one entry for each receive and each
// send request, and some spare ones.
constexpr int kCompletions = kReceives + kSendRequests + 8;

rdma_conn_param ParamsFor(const Options& options, const Terms& terms,
                          absl::string_view private_data) {
  rdma_conn_param param = {};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<uint8_t>(private_data.size());
  param.responder_resources = static_cast<uint8_t>(terms.reads);
  param.initiator_depth = static_cast<uint8_t>(terms.reads);
  param.retry_count = std::min<uint8_t>(options.retry_count, 6);
  // A value that rarely matters, because credits guarantee that a receive is
  // posted; see credits.h.
  param.rnr_retry_count = 6;
  return param;
}

}  // namespace

absl::StatusOr<std::shared_ptr<CmConnection>> CmConnection::Create(
    const Site& site, CmId id) {
  std::shared_ptr<CmConnection> self(new CmConnection(site, std::move(id)));
  absl::Status made = base::Descriptors::Now().CheckForPath();
  if (made.ok()) made = self->LookAtDevice();
  if (made.ok()) made = self->MakeDomain();
  if (made.ok()) made = self->MakeQueuePair();
  if (!made.ok()) return made;
  return self;
}

CmConnection::CmConnection(const Site& site, CmId id)
    : site_(site),
      api_(site.api),
      fork_count_(progress::ForkCount()),
      id_(std::move(id)),
      exposed_quota_(std::make_shared<Quota>(site.options.exposed_bytes)),
      read_quota_(std::make_shared<Quota>(site.options.read_bytes)) {}

void CmConnection::Begin(const std::shared_ptr<CmConnection>& self,
                         const Terms& peer) {
  self->peer_ = peer;
  self->site_.channel->SetHandler(self->id_.get(), self);
  self->site_.supervisor->Add(self);
}

absl::Status CmConnection::LookAtDevice() {
  ibv_device_attr device = {};
  const int error = api_->QueryDevice(id_->verbs, &device);
  if (error != 0) return CallFailed(api_, error, "query", id_->verbs);
  terms_.receives = kReceives;
  terms_.reads = static_cast<uint16_t>(
      std::max(1, std::min({kMaxReads, device.max_qp_rd_atom,
                            device.max_qp_init_rd_atom})));
  gpu_direct_ =
      site_.devices->GpuDirectOf(id_->verbs, device.node_guid, id_->port_num);
  if (site_.options.windows == Windows::kNever) {
    windows_ = absl::FailedPreconditionError("windows are off");
  } else {
    windows_ = site_.devices->WindowsOf(id_->verbs, id_->port_num);
  }
  return absl::OkStatus();
}

absl::Status CmConnection::MakeDomain() {
  const Options& options = site_.options;
  absl::StatusOr<std::shared_ptr<Domain>> domain =
      windows_.ok()
          ? site_.devices->DomainOf(id_->verbs, options, site_.locked_limit,
                                    gpu_direct_)
          : Domain::Create(api_, id_->verbs, options, /*with_windows=*/false,
                           site_.locked_limit, gpu_direct_);
  if (!domain.ok()) return domain.status();
  domain_ = *std::move(domain);
  absl::StatusOr<std::unique_ptr<Completions>> completions =
      Completions::Create(api_, id_->verbs, kCompletions);
  if (!completions.ok()) return completions.status();
  completions_ = *std::move(completions);
  absl::StatusOr<std::unique_ptr<Receives>> receives = Receives::Create(
      api_, domain_->get(), domain_->private_pool(), kReceives, kBufferBytes);
  if (!receives.ok()) return receives.status();
  receives_ = *std::move(receives);
  return absl::OkStatus();
}

absl::Status CmConnection::MakeQueuePair() {
  ibv_qp_init_attr attr = {};
  attr.send_cq = completions_->queue();
  attr.recv_cq = completions_->queue();
  attr.srq = receives_->queue();
  attr.cap.max_send_wr = kSendRequests;
  attr.cap.max_send_sge = 1;
  attr.cap.max_inline_data = kInlineBytes;
  attr.qp_type = IBV_QPT_RC;
  if (api_->CreateQp(id_.get(), domain_->get(), &attr) != 0) {
    // Tries again without inline data, because some devices have less inline
    // room.
    attr.cap.max_inline_data = 0;
    if (api_->CreateQp(id_.get(), domain_->get(), &attr) != 0) {
      return CallFailed(api_, errno, "create a queue pair", id_->verbs);
    }
  }
  inline_bytes_ = attr.cap.max_inline_data;
  return absl::OkStatus();
}

CmConnection::~CmConnection() {
  if (fork_count_ != progress::ForkCount()) {
    // Leaks the objects in a forked child, because destroying them would also
    // destroy the parent's objects.
    new CmId(std::move(id_));
    new std::shared_ptr<Domain>(std::move(domain_));
    new std::unique_ptr<Completions>(std::move(completions_));
    new std::unique_ptr<Receives>(std::move(receives_));
    new Site(site_);
    return;
  }
  site_.channel->Forget(id_.get());
  DestroyQueuePair();
}

absl::Status CmConnection::Connect(absl::string_view private_data) {
  rdma_conn_param param = ParamsFor(site_.options, terms_, private_data);
  if (api_->Connect(id_.get(), &param) == 0) return absl::OkStatus();
  return CallFailed(api_, errno, "connect", id_->verbs);
}

absl::Status CmConnection::Accept(const CmEvent& request,
                                  absl::string_view private_data) {
  rdma_conn_param param = ParamsFor(site_.options, terms_, private_data);
  param.responder_resources =
      std::min(param.responder_resources, request.initiator_depth);
  param.initiator_depth =
      std::min(param.initiator_depth, request.responder_resources);
  if (api_->Accept(id_.get(), &param) == 0) return absl::OkStatus();
  return CallFailed(api_, errno, "accept", id_->verbs);
}

absl::Status CmConnection::PermitReads() {
  ibv_qp_attr attr = {};
  attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;
  const int error = api_->ModifyQp(id_->qp, &attr, IBV_QP_ACCESS_FLAGS);
  if (error == 0) return absl::OkStatus();
  return CallFailed(api_, error, "set a queue pair's access", id_->verbs);
}

std::string CmConnection::Describe() const {
  std::string text = absl::StrCat(DescribeDevice(api_, *id_), ", to ",
                                  AddressText(id_->route.addr.dst_addr));
  if (!windows_.ok()) {
    absl::StrAppend(&text, ", staged: ", windows_.status().message());
  } else if (*windows_ == WindowTrust::kAll) {
    absl::StrAppend(&text, ", windows");
  } else {
    absl::StrAppend(&text, ", windows for a test: reads reach beyond them");
  }
  const std::string gpus = domain_->DescribeGpus();
  if (!gpus.empty()) absl::StrAppend(&text, ", ", gpus);
  const RegistrationCounters counters = domain_->counters();
  if (counters.misses > 0) {
    absl::StrAppend(&text, ", registrations: ", counters.hits, " hits, ",
                    counters.misses, " misses, ", counters.evictions,
                    " evictions, ", counters.kept_bytes >> 20, " MiB kept");
  }
  return text;
}

void CmConnection::DestroyQueuePair() {
  if (id_->qp == nullptr) return;
  // Tells the peer. After an error, the peer is gone already.
  (void)api_->Disconnect(id_.get());
  api_->DestroyQp(id_.get());
}

void CmConnection::Lose(const absl::Status& cause) {
  {
    base::MutexLock lock(&mu_);
    if (!cause_.ok()) return;
    cause_ = cause;
  }
  lost_.store(true, std::memory_order_release);
  completions_->Wake();
}

absl::Status CmConnection::cause() const {
  base::MutexLock lock(&mu_);
  return cause_;
}

void CmConnection::Post(SendQueue* queue) {
  if (is_lost()) return;
  absl::Status posted = queue->Post(queue_pair());
  if (!posted.ok()) Lose(posted);
  posted_.store(queue->posted(), std::memory_order_relaxed);
  ended_.store(queue->ended(), std::memory_order_relaxed);
}

void CmConnection::OnTick() {
  domain()->OnTick(base::SteadyNow());
  const uint64_t ended = ended_.load(std::memory_order_relaxed);
  if (ended == posted_.load(std::memory_order_relaxed) ||
      ended != ended_then_) {
    ended_then_ = ended;
    idle_ticks_ = 0;
    return;
  }
  ++idle_ticks_;
  if (idle_ticks_ == 1) {
    // Requests a probe. All requests may have ended without a completion,
    // because only signaled requests get one.
    wants_probe_ = true;
    completions_->Wake();
  } else if (wants_probe_ || completions_->HasInput()) {
    // Does not count this tick. Completions may be missing only because no
    // thread polls, for example because a client is between two calls. This
    // does not mean that the device hangs.
    idle_ticks_ = 1;
  } else if (idle_ticks_ * kSupervisionPeriod >=
             site_.options.completion_timeout) {
    Lose(absl::DeadlineExceededError(
        absl::StrCat("the RDMA device has completed nothing for ",
                     absl::FormatDuration(site_.options.completion_timeout))));
  }
}

void CmConnection::OnCmEvent(CmEvent event) {
  // Ignores events after the end, and events that change nothing.
  if (event.type == RDMA_CM_EVENT_TIMEWAIT_EXIT ||
      event.type == RDMA_CM_EVENT_ESTABLISHED) {
    return;
  }
  Lose(CmStatus(event.type, event.status));
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
