#include "tests/transport/fabric/verbs/fake/fake_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "tests/transport/fabric/verbs/fake/fake_device.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr uint32_t kOwnerByte = 0xff;

// Returns the place where the device finds the byte at `address` of its region.
void* PinnedAt(FakeMr& mr, uint64_t address) {
  if (mr.gpu != nullptr) {
    return mr.gpu + (address - reinterpret_cast<uint64_t>(mr.addr));
  }
  if (mr.old_pages.empty()) return reinterpret_cast<void*>(address);
  return mr.old_pages.data() + (address - reinterpret_cast<uint64_t>(mr.addr));
}

const DeviceOptions& OptionsOf(const ibv_qp& qp) {
  return FakeDevices::Of(qp.context)->options;
}

// Returns true if [address, address + length) lies in the other range.
bool Inside(uint64_t address, uint64_t length, uint64_t outer_address,
            uint64_t outer_length) {
  if (address < outer_address || length > outer_length) return false;
  return address - outer_address <= outer_length - length;
}

// Returns memory that a faulty device uses in place of the GPU's.
void* Elsewhere(FakeMr* mr) {
  mr->elsewhere.assign(mr->length, 0);
  return mr->elsewhere.data();
}

uint64_t AddressOf(const ibv_mr& mr) {
  return reinterpret_cast<uint64_t>(mr.addr);
}

bool IsMapped(const void* address, size_t length) {
  const uint64_t page = sysconf(_SC_PAGESIZE);
  const uint64_t from = reinterpret_cast<uint64_t>(address) & ~(page - 1);
  const uint64_t to = reinterpret_cast<uint64_t>(address) + length;
  std::vector<unsigned char> resident((to - from + page - 1) / page);
  return mincore(reinterpret_cast<void*>(from), to - from, resident.data()) ==
         0;
}

// Returns true if the CPU can read `length` bytes at `address`. The CPU cannot
// read GPU memory.
bool IsReadable(const void* address, size_t length) {
  for (const size_t at : {size_t{0}, length - 1}) {
    char byte;
    iovec into = {&byte, 1};
    iovec from = {const_cast<char*>(static_cast<const char*>(address)) + at, 1};
    if (process_vm_readv(getpid(), &into, 1, &from, 1, 0) != 1) return false;
  }
  return true;
}

// The access flags that Linux accepts for a dmabuf. All others, such as the
// flag for binding windows, are refused with EINVAL
// (UVERBS_METHOD_REG_DMABUF_MR in uverbs_std_types_mr.c).
constexpr int kDmabufAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING;

bool MayRegister(const FakeDevice& device, size_t length, int access) {
  if (length == 0 || length > device.options.max_mr_bytes) return false;
  const int remote_change = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  return (access & remote_change) == 0 ||
         (access & IBV_ACCESS_LOCAL_WRITE) != 0;
}

}  // namespace

int FakeMemory::AllocPd(ibv_context* context, ibv_pd** made) {
  if (FakeDevices::Of(context)->removed) return EIO;
  auto* const pd = new FakePd();
  pd->context = context;
  ledger_->Made("ibv_pd", pd);
  *made = pd;
  return 0;
}

int FakeMemory::DeallocPd(ibv_pd* pd) {
  if (!ledger_->IsAlive("ibv_pd", pd)) return EINVAL;
  if (static_cast<FakePd*>(pd)->users > 0) {
    ledger_->Misused("ibv_dealloc_pd before what lies in it");
    return EBUSY;
  }
  ledger_->Ended(pd);
  delete static_cast<FakePd*>(pd);
  return 0;
}

int FakeMemory::RegMr(ibv_pd* pd, void* address, size_t length, int access,
                      ibv_mr** made) {
  if (!ledger_->IsAlive("ibv_pd", pd)) return EINVAL;
  FakeDevice* const device = FakeDevices::Of(pd->context);
  if (device->removed) return EIO;
  if (!MayRegister(*device, length, access)) return EINVAL;
  auto mr = std::make_unique<FakeMr>();
  if (device->options.peer_memory != nullptr) {
    mr->gpu = device->options.peer_memory(address, length);
  }
  if (mr->gpu == nullptr &&
      (!IsMapped(address, length) || !IsReadable(address, length))) {
    return EFAULT;
  }
  return Add(pd, reinterpret_cast<uint64_t>(address), length, access,
             mr.release(), made);
}

int FakeMemory::RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t length,
                            uint64_t iova, int fd, int access, ibv_mr** made) {
  if (!ledger_->IsAlive("ibv_pd", pd)) return EINVAL;
  FakeDevice* const device = FakeDevices::Of(pd->context);
  if (device->removed) return EIO;
  if (!device->options.has_dmabuf) return EOPNOTSUPP;
  if ((access & ~kDmabufAccess) != 0) return EINVAL;
  if (!MayRegister(*device, length, access)) return EINVAL;
  struct stat file;
  if (fstat(fd, &file) != 0) return EBADF;
  const uint64_t size = file.st_size;
  const uint64_t page = sysconf(_SC_PAGESIZE);
  if (offset % page != iova % page || offset > size || length > size - offset) {
    return EINVAL;
  }
  auto mr = std::make_unique<FakeMr>();
  void* const data =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return EACCES;
  mr->mapping.data = data;
  mr->mapping.size = size;
  mr->gpu = static_cast<uint8_t*>(data) + offset;
  return Add(pd, iova, length, access, mr.release(), made);
}

int FakeMemory::Add(ibv_pd* pd, uint64_t address, size_t length, int access,
                    FakeMr* region, ibv_mr** made) {
  std::unique_ptr<FakeMr> mr(region);
  FakeDevice* const device = FakeDevices::Of(pd->context);
  if (length > device->options.memlock_bytes - device->registered_bytes) {
    return ENOMEM;
  }
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = reinterpret_cast<void*>(address);
  mr->length = length;
  mr->access = access;
  // Gives the region two different keys, as a device may. A test then notices
  // if the wrong key is used.
  mr->lkey = NextKey();
  mr->rkey = NextKey();
  by_lkey_[mr->lkey] = mr.get();
  by_rkey_[mr->rkey] = mr.get();
  device->registered_bytes += length;
  ++static_cast<FakePd*>(pd)->users;
  ledger_->Made("ibv_mr", mr.get());
  *made = mr.release();
  return 0;
}

int FakeMemory::DeregMr(ibv_mr* mr) {
  if (!ledger_->IsAlive("ibv_mr", mr)) return EINVAL;
  auto* const region = static_cast<FakeMr*>(mr);
  if (region->windows > 0) {
    ledger_->Misused("ibv_dereg_mr with a window bound to it");
    return EBUSY;
  }
  by_lkey_.erase(mr->lkey);
  by_rkey_.erase(mr->rkey);
  FakeDevices::Of(mr->context)->registered_bytes -= mr->length;
  --static_cast<FakePd*>(mr->pd)->users;
  ledger_->Ended(mr);
  delete region;
  return 0;
}

int FakeMemory::AllocMw(ibv_pd* pd, ibv_mw_type type, ibv_mw** made) {
  if (!ledger_->IsAlive("ibv_pd", pd)) return EINVAL;
  const FakeDevice& device = *FakeDevices::Of(pd->context);
  if (device.removed) return EIO;
  if (!device.options.has_windows || type != IBV_MW_TYPE_2) return EOPNOTSUPP;
  auto* const mw = new FakeMw();
  mw->context = pd->context;
  mw->pd = pd;
  mw->type = type;
  mw->key = NextKey();
  mw->rkey = mw->key;
  windows_[mw->key & ~kOwnerByte] = mw;
  ++static_cast<FakePd*>(pd)->users;
  ledger_->Made("ibv_mw", mw);
  *made = mw;
  return 0;
}

int FakeMemory::DeallocMw(ibv_mw* mw) {
  if (!ledger_->IsAlive("ibv_mw", mw)) return EINVAL;
  auto* const window = static_cast<FakeMw*>(mw);
  Unbind(window);
  windows_.erase(window->key & ~kOwnerByte);
  --static_cast<FakePd*>(mw->pd)->users;
  ledger_->Ended(mw);
  delete window;
  return 0;
}

void* FakeMemory::Local(const ibv_pd* pd, const ibv_sge& part,
                        bool for_writing) const {
  const auto found = by_lkey_.find(part.lkey);
  if (found == by_lkey_.end()) return nullptr;
  FakeMr& mr = *found->second;
  if (mr.pd != pd) return nullptr;
  if (for_writing && (mr.access & IBV_ACCESS_LOCAL_WRITE) == 0) return nullptr;
  if (!Inside(part.addr, part.length, AddressOf(mr), mr.length)) {
    return nullptr;
  }
  if (mr.gpu != nullptr) {
    const bool comes = FakeDevices::Of(mr.context)->options.writes_gpus;
    return comes ? PinnedAt(mr, part.addr) : Elsewhere(&mr);
  }
  return reinterpret_cast<void*>(part.addr);
}

void* FakeMemory::Remote(const FakeQp& qp, uint32_t rkey, uint64_t address,
                         uint64_t length, int access) const {
  const auto region = by_rkey_.find(rkey);
  if (region != by_rkey_.end()) {
    FakeMr& mr = *region->second;
    const bool may =
        (mr.access & access) == access || !OptionsOf(qp).enforce_region_access;
    const bool allowed = mr.pd == qp.pd && may &&
                         Inside(address, length, AddressOf(mr), mr.length);
    if (!allowed) return nullptr;
    const bool comes = mr.gpu == nullptr || OptionsOf(qp).reads_gpus;
    return comes ? PinnedAt(mr, address) : Elsewhere(&mr);
  }
  const auto window = windows_.find(rkey & ~kOwnerByte);
  if (window == windows_.end()) return nullptr;
  const FakeMw& mw = *window->second;
  const DeviceOptions& options = OptionsOf(qp);
  const bool is_own =
      mw.qp_num == qp.qp_num || !options.enforce_window_queue_pair;
  if (mw.region == nullptr || mw.key != rkey || !is_own ||
      (mw.access & access) != static_cast<unsigned>(access)) {
    return nullptr;
  }
  const bool strict = options.enforce_window_range;
  const bool inside = strict ? Inside(address, length, mw.address, mw.length)
                             : Inside(address, length, AddressOf(*mw.region),
                                      mw.region->length);
  if (!inside) return nullptr;
  if (mw.region->gpu != nullptr && !options.reads_gpus) {
    return Elsewhere(mw.region);
  }
  return PinnedAt(*mw.region, address);
}

void FakeMemory::ReplacePages(uint64_t address, uint64_t length) {
  for (const auto& entry : by_lkey_) {
    FakeMr& mr = *entry.second;
    if (mr.gpu != nullptr) continue;
    const uint64_t begin = AddressOf(mr);
    if (!mr.old_pages.empty() || begin >= address + length ||
        address >= begin + mr.length) {
      continue;
    }
    const auto* const bytes = static_cast<const uint8_t*>(mr.addr);
    mr.old_pages.assign(bytes, bytes + mr.length);
  }
}

// Returns true if the window may be bound, by IBTA 10.6.7.2, 11.4.2, and the
// checks of the kernel's rxe_mw.c.
bool FakeMemory::MayBind(const FakeQp& qp, const FakeSend& work,
                         const FakeMw& mw) const {
  const ibv_mw_bind_info& info = work.wr.bind_mw.bind_info;
  const uint32_t key = work.wr.bind_mw.rkey;
  const auto found =
      info.mr == nullptr ? by_lkey_.end() : by_lkey_.find(info.mr->lkey);
  if (found == by_lkey_.end() || info.length == 0) return false;
  const FakeMr& mr = *found->second;
  if (mr.gpu != nullptr && !OptionsOf(qp).binds_gpus) return false;
  const bool key_is_next = work.window_key == mw.key && key != mw.key &&
                           (key & ~kOwnerByte) == (mw.key & ~kOwnerByte);
  const bool remote_writes =
      (info.mw_access_flags &
       (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  return key_is_next && mw.region == nullptr && mw.pd == qp.pd &&
         mr.pd == qp.pd && (mr.access & IBV_ACCESS_MW_BIND) != 0 &&
         (!remote_writes || (mr.access & IBV_ACCESS_LOCAL_WRITE) != 0) &&
         Inside(info.addr, info.length, AddressOf(mr), mr.length);
}

bool FakeMemory::Bind(const FakeQp& qp, const FakeSend& work) {
  const auto found = windows_.find(work.wr.bind_mw.rkey & ~kOwnerByte);
  if (found == windows_.end() || found->second != work.wr.bind_mw.mw) {
    return false;
  }
  FakeMw& mw = *found->second;
  if (!MayBind(qp, work, mw)) return false;
  const ibv_mw_bind_info& info = work.wr.bind_mw.bind_info;
  mw.key = work.wr.bind_mw.rkey;
  mw.region = static_cast<FakeMr*>(info.mr);
  mw.qp_num = qp.qp_num;
  mw.address = info.addr;
  mw.length = info.length;
  mw.access = info.mw_access_flags;
  ++mw.region->windows;
  return true;
}

bool FakeMemory::Invalidate(const FakeQp& qp, uint32_t rkey) {
  const auto found = windows_.find(rkey & ~kOwnerByte);
  if (found == windows_.end()) return false;
  FakeMw& mw = *found->second;
  if (mw.region == nullptr || mw.key != rkey || mw.qp_num != qp.qp_num) {
    return false;
  }
  if (!OptionsOf(qp).enforce_invalidation) return true;
  Unbind(&mw);
  return true;
}

void FakeMemory::Unbind(FakeMw* mw) {
  if (mw->region != nullptr) --mw->region->windows;
  mw->region = nullptr;
  mw->qp_num = 0;
}

int FakeMemory::CountBound() const {
  int count = 0;
  for (const auto& window : windows_) count += window.second->region != nullptr;
  return count;
}

int FakeMemory::UnbindAll(uint32_t qp_num) {
  int count = 0;
  for (const auto& window : windows_) {
    if (window.second->qp_num != qp_num) continue;
    Unbind(window.second);
    ++count;
  }
  return count;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
