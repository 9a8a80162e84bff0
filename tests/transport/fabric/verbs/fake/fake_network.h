// Simulates a network below the connection manager, and the order of its
// events.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_NETWORK_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_NETWORK_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "tests/transport/fabric/verbs/fake/fake_completion.h"
#include "tests/transport/fabric/verbs/fake/fake_device.h"
#include "tests/transport/fabric/verbs/fake/fake_faults.h"
#include "tests/transport/fabric/verbs/fake/fake_ledger.h"
#include "tests/transport/fabric/verbs/fake/fake_memory.h"
#include "tests/transport/fabric/verbs/fake/fake_objects.h"
#include "tests/transport/fabric/verbs/fake/fake_options.h"
#include "tests/transport/fabric/verbs/fake/fake_queue_pair.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The simulated network between queue pairs. Not thread-safe.
class FakeNetwork {
 public:
  explicit FakeNetwork(const NetworkOptions& options) : options(options) {}
  FakeNetwork(const FakeNetwork&) = delete;
  FakeNetwork& operator=(const FakeNetwork&) = delete;

  const NetworkOptions options;
  FakeLedger ledger;
  FakeFaults faults;
  FakeDevices devices;
  FakeMemory memory{&ledger};
  FakeCompletions completions{&ledger, &devices};
  FakeQueuePairs queue_pairs{&ledger, &devices, &memory};
  bool held = false;

  int PostSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
    return queue_pairs.PostSend(qp, request, bad, &next_sequence_);
  }
  // Runs `deliver` in order, once the link between the two is up.
  void Send(const FakeDevice* from, const FakeDevice* to,
            std::function<void()> deliver);
  // Does the oldest work that is possible. Returns false if there is none.
  bool Step();
  // Does all work, unless held.
  void Run();

 private:
  struct Message {
    uint64_t sequence;
    const FakeDevice* from;
    const FakeDevice* to;
    std::function<void()> deliver;
  };

  bool Deliver(uint64_t sequence);
  // Executes the first work request. Returns false if the work must wait.
  bool TryHead(FakeQp* qp);
  bool TryRemote(FakeQp* qp, const FakeSend& work, FakeQp* peer);
  bool TryMessage(FakeQp* qp, FakeSend* work, FakeQp* peer);
  void DoReceive(FakeQp* qp, const FakeSend& work, FakeQp* peer);
  ibv_wc_status DoLocal(const FakeQp& qp, const FakeSend& work);
  ibv_wc_status DoAccess(const FakeQp& qp, const FakeSend& work, FakeQp* peer);
  ibv_wc_status CheckLocal(const FakeQp& qp, const FakeSend& work) const;
  // Returns the CPU's addresses of the memory that `work` reads into.
  std::vector<ibv_sge> TargetsOf(const FakeQp& qp, const FakeSend& work) const;

  // Ends the oldest request of `qp`: adds its completion, if any, and breaks
  // the queue pair on failure.
  void Complete(FakeQp* qp, ibv_wc_status status);
  void CompleteReceive(FakeQp* qp, const FakeReceive& receive, ibv_wc wc,
                       bool solicited);
  void ReportAccessError(FakeQp* qp);

  uint64_t next_sequence_ = 1;
  std::deque<Message> messages_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_NETWORK_H_
