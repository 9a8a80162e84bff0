// Queue pairs and shared receive queues of a fake network. They check work
// requests like a device.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_QUEUE_PAIR_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <thread>

#include "tests/transport/fabric/verbs/fake/fake_completion.h"
#include "tests/transport/fabric/verbs/fake/fake_device.h"
#include "tests/transport/fabric/verbs/fake/fake_ledger.h"
#include "tests/transport/fabric/verbs/fake/fake_memory.h"
#include "tests/transport/fabric/verbs/fake/fake_objects.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The simulated queue pairs. Functions that return an int return 0 or the error
// number. Not thread-safe.
class FakeQueuePairs {
 public:
  FakeQueuePairs(FakeLedger* ledger, FakeDevices* devices, FakeMemory* memory)
      : ledger_(ledger), devices_(devices), memory_(memory) {}

  int CreateSrq(ibv_pd* pd, const ibv_srq_init_attr& attr, ibv_srq** made);
  int DestroySrq(ibv_srq* srq);
  int PostSrqRecv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad);

  // Makes a queue pair in state INIT.
  int Create(ibv_pd* pd, ibv_qp_init_attr* attr, FakeQp** made);
  void Destroy(FakeQp* qp);
  // Returns true if a thread other than `destroyer` has an unacknowledged event
  // of the queue pair.
  bool AwaitsAsyncAck(const ibv_qp* qp, std::thread::id destroyer) const;
  // Makes a queue pair in state RESET, for Modify().
  int CreateRaw(ibv_pd* pd, ibv_qp_init_attr* attr, FakeQp** made);
  int DestroyRaw(ibv_qp* qp);
  // Returns the queue pair of this number, or null if there is none or it was
  // destroyed.
  FakeQp* Find(uint32_t qp_num) const;
  const std::map<uint32_t, FakeQp*>& all() const { return all_; }

  // Queues the requests, numbered from *sequence on.
  int PostSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad,
               uint64_t* sequence);
  int Modify(ibv_qp* qp, const ibv_qp_attr& attr, int mask);
  int Query(ibv_qp* qp, ibv_qp_attr* attr, ibv_qp_init_attr* init) const;
  // Moves the queue pair to the error state, which will flush its requests.
  void Break(FakeQp* qp);
  // Records that the owner has seen this completion.
  void Polled(const FakeCompletion& completion);

 private:
  int CheckCreate(ibv_pd* pd, const ibv_qp_init_attr& attr) const;
  int ModifyRaw(FakeQp* qp, const ibv_qp_attr& attr, int mask);
  int CheckSend(const FakeQp& qp, const ibv_send_wr& wr) const;

  FakeLedger* const ledger_;
  FakeDevices* const devices_;
  FakeMemory* const memory_;
  uint32_t last_qp_num_ = 16;
  std::map<uint32_t, FakeQp*> all_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_QUEUE_PAIR_H_
