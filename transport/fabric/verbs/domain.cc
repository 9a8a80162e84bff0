#include "transport/fabric/verbs/domain.h"

#include <utility>

#include "absl/memory/memory.h"
#include "transport/fabric/verbs/locked_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// The access flags of regions with windows. Only windows give peers access.
constexpr int kWithWindows = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

int PrivateAccess(bool with_windows) {
  return with_windows ? kWithWindows : IBV_ACCESS_LOCAL_WRITE;
}

uint64_t KeptBytes(const Options& options, bool with_windows,
                   uint64_t locked_limit) {
  // Returns the budget of the cache. With memory windows, all connections share
  // one cache. Without windows, each connection has a cache of its own, which
  // is smaller: it holds only payloads that did not fit into the connection's
  // pool.
  return CacheBudget(with_windows ? options.cache_bytes : options.read_bytes,
                     locked_limit);
}

GpuKeeping GpuKeepingOf(const Options& options) {
  GpuKeeping keeping;
  keeping.bytes = options.gpu_cache_bytes;
  keeping.least_alone = options.gpu_alone_bytes;
  return keeping;
}

// Memory of the program that keeps its pages while READs write to it.
struct PreparedMemory {
  // The promise that the pages stay. Null if the program made the promise
  // itself.
  std::unique_ptr<memory::StableMemory> promise;
  Registered registered;  // ended first
};

}  // namespace

absl::StatusOr<std::shared_ptr<Domain>> Domain::Create(
    Api* api, ibv_context* device, const Options& options, bool with_windows,
    uint64_t locked_limit, std::shared_ptr<GpuDirect> gpu_direct) {
  absl::StatusOr<ProtectionDomain> domain = AllocPd(api, device);
  if (!domain.ok()) return domain.status();
  return std::shared_ptr<Domain>(absl::WrapUnique(new Domain(
      api, std::make_shared<const ProtectionDomain>(*std::move(domain)),
      options, with_windows, locked_limit, std::move(gpu_direct))));
}

Domain::Domain(Api* api, std::shared_ptr<const ProtectionDomain> domain,
               const Options& options, bool with_windows, uint64_t locked_limit,
               std::shared_ptr<GpuDirect> gpu_direct)
    : with_windows_(with_windows),
      domain_(std::move(domain)),
      private_pool_(
          Pool::Create(api, domain_, PrivateAccess(with_windows),
                       with_windows ? kUnlimited : options.read_bytes)),
      exposed_pool_(with_windows ? private_pool_
                                 : Pool::Create(api, domain_,
                                                IBV_ACCESS_LOCAL_WRITE |
                                                    IBV_ACCESS_REMOTE_READ,
                                                options.exposed_bytes)),
      cache_(RegistrationCache::Create(
          api, domain_, KeptBytes(options, with_windows, locked_limit))),
      spare_(SpareBlock::Create(KeptBytes(options, with_windows, locked_limit),
                                options.spare_idle)),
      gpu_direct_(std::move(gpu_direct)),
      gpus_(GpuRegistrations::Create(domain_, gpu_direct_,
                                     PrivateAccess(with_windows),
                                     GpuKeepingOf(options))) {}

absl::StatusOr<memory::Block> Domain::AllocateForRead(
    size_t size, const std::shared_ptr<Quota>& quota) {
  absl::StatusOr<std::shared_ptr<PoolLease>> lease =
      private_pool_->Allocate(size, quota);
  if (!lease.ok()) return spare_->Allocate(size);
  memory::Block block;
  block.data = std::shared_ptr<uint8_t>(*lease, (*lease)->data());
  block.size = size;
  return block;
}

std::shared_ptr<const void> Domain::PrepareToRead(
    const memory::Destination& into) {
  if (into.device == nullptr) return PrepareHost(into);
  if (into.size < memory::kMinDeviceBytes) return nullptr;
  return gpus_->Prepare(into, kCopyMaxBytes);
}

std::shared_ptr<const void> Domain::PrepareHost(
    const memory::Destination& into) {
  if (into.size < kMinPartBytes) return nullptr;
  auto prepared = std::make_shared<PreparedMemory>();
  if (memory::FindStable(into.data, into.size) == nullptr &&
      private_pool_->FindRegion(into.data, into.size) == nullptr) {
    if (into.size <= kCopyMaxBytes) return nullptr;
    // Declares the whole range as stable, so that each READ of a part finds the
    // same registration.
    absl::StatusOr<std::unique_ptr<memory::StableMemory>> promise =
        memory::StableMemory::Declare(into.data, into.size);
    if (!promise.ok()) return nullptr;  // a part is declared by the program
    prepared->promise = *std::move(promise);
  }
  absl::StatusOr<Registered> registered =
      GetForRead(memory::Bytes{into.data, into.size, nullptr}, nullptr);
  if (!registered.ok()) return nullptr;
  prepared->registered = *std::move(registered);
  return prepared;
}

absl::StatusOr<Registered> Domain::GetForRead(const memory::Bytes& bytes,
                                              memory::DeviceAccess** gpu) {
  GpuRegistrations::Target of_gpu = gpus_->FindPrepared(bytes.data, bytes.size);
  if (of_gpu.region != nullptr) {
    if (gpu != nullptr) *gpu = of_gpu.gpu;
    ibv_mr* const region = of_gpu.region->region();
    return Registered{region, std::move(of_gpu.region)};
  }
  Registered found;
  found.region = private_pool_->FindRegion(bytes.data, bytes.size);
  if (found.region != nullptr) return found;
  absl::StatusOr<SharedRegistration> share =
      cache_->Get(bytes, PrivateAccess(with_windows_));
  if (!share.ok()) return share.status();
  return Registered{(*share)->region(), *share};
}

Registered Domain::FindForWindow(const memory::Bytes& bytes) {
  Registered found;
  // Finds received bytes in the pool, which can be sent on without a copy.
  found.region = private_pool_->FindRegion(bytes.data, bytes.size);
  if (found.region != nullptr) return found;
  found.share = cache_->Find(bytes, IBV_ACCESS_MW_BIND);
  if (found.share != nullptr) found.region = found.share->region();
  return found;
}

absl::StatusOr<Registered> Domain::GetForWindow(const memory::Bytes& bytes) {
  absl::StatusOr<SharedRegistration> share =
      cache_->Get(bytes, IBV_ACCESS_MW_BIND);
  if (!share.ok()) return share.status();
  return Registered{(*share)->region(), *share};
}

absl::StatusOr<Registered> Domain::GetGpuToExpose(const memory::Bytes& bytes) {
  absl::StatusOr<GpuRegistrations::ToSend> made =
      gpus_->GetToSend(bytes, kCopyMaxBytes);
  if (!made.ok()) return made.status();
  ibv_mr* const region = made->region->region();
  return Registered{region, std::move(made->region), made->by_key};
}

RegistrationCounters Domain::counters() const {
  RegistrationCounters counters = cache_->counters();
  const RegistrationCounters gpus = gpus_->counters();
  counters.hits += gpus.hits;
  counters.misses += gpus.misses;
  counters.evictions += gpus.evictions;
  counters.kept_bytes += gpus.kept_bytes;
  return counters;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
