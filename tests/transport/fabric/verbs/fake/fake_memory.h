// Protection domains, regions and windows of a fake network, and their access
// rights.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_MEMORY_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_MEMORY_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <map>

#include "tests/transport/fabric/verbs/fake/fake_ledger.h"
#include "tests/transport/fabric/verbs/fake/fake_objects.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The simulated memory regions and windows. Functions that return an int return
// 0 or the error number. Not thread-safe.
class FakeMemory {
 public:
  explicit FakeMemory(FakeLedger* ledger) : ledger_(ledger) {}

  int AllocPd(ibv_context* context, ibv_pd** made);
  int DeallocPd(ibv_pd* pd);
  int RegMr(ibv_pd* pd, void* address, size_t length, int access,
            ibv_mr** made);
  int RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova,
                  int fd, int access, ibv_mr** made);
  int DeregMr(ibv_mr* mr);
  int AllocMw(ibv_pd* pd, ibv_mw_type type, ibv_mw** made);
  int DeallocMw(ibv_mw* mw);

  // Returns the memory of `part`. Returns null if `pd` has no such key, or if
  // the key does not permit the access.
  void* Local(const ibv_pd* pd, const ibv_sge& part, bool for_writing) const;
  // Announces that other pages will be mapped at [address, address + length).
  // Regions keep the current pages.
  void ReplacePages(uint64_t address, uint64_t length);
  // Returns the memory that a peer of `qp` may access by `rkey`, or null.
  // `access` is one of IBV_ACCESS_REMOTE_*.
  void* Remote(const FakeQp& qp, uint32_t rkey, uint64_t address,
               uint64_t length, int access) const;
  // Bind or invalidate a window. The receiver of SEND_WITH_INV also uses
  // Invalidate(). Return false if the operation is not permitted.
  bool Bind(const FakeQp& qp, const FakeSend& work);
  bool Invalidate(const FakeQp& qp, uint32_t rkey);
  // Ends the windows of a destroyed queue pair. Returns their number.
  int UnbindAll(uint32_t qp_num);
  // Returns the number of bound windows.
  int CountBound() const;

 private:
  // Registers memory. Called after the checks.
  int Add(ibv_pd* pd, uint64_t address, size_t length, int access,
          FakeMr* region, ibv_mr** made);
  // Returns a key: three bytes of index, and one byte that the owner chooses.
  uint32_t NextKey() { return (key_index_ += 3) << 8; }
  bool MayBind(const FakeQp& qp, const FakeSend& work, const FakeMw& mw) const;
  void Unbind(FakeMw* mw);

  FakeLedger* const ledger_;
  uint32_t key_index_ = 0x100;
  std::map<uint32_t, FakeMr*> by_lkey_;
  std::map<uint32_t, FakeMr*> by_rkey_;
  std::map<uint32_t, FakeMw*> windows_;  // By key, without its last byte.
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_MEMORY_H_
