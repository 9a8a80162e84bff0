// Completion queues and channels of a fake network.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_COMPLETION_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_COMPLETION_H_

#include <infiniband/verbs.h>

#include <vector>

#include "tests/transport/fabric/verbs/fake/fake_device.h"
#include "tests/transport/fabric/verbs/fake/fake_ledger.h"
#include "tests/transport/fabric/verbs/fake/fake_objects.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The simulated completion queues. Functions that return an int return 0 or the
// error number. Not thread-safe.
class FakeCompletions {
 public:
  FakeCompletions(FakeLedger* ledger, FakeDevices* devices)
      : ledger_(ledger), devices_(devices) {}

  int CreateChannel(ibv_context* context, ibv_comp_channel** made);
  int DestroyChannel(ibv_comp_channel* channel);
  int CreateCq(ibv_context* context, int entries, void* cq_context,
               ibv_comp_channel* channel, int vector, ibv_cq** made);
  int DestroyCq(ibv_cq* cq);

  // Arms for the next completion, ignoring existing ones.
  int Arm(ibv_cq* cq, bool solicited_only);
  // Takes an event. Returns null if there is none.
  ibv_cq* TakeEvent(ibv_comp_channel* channel);
  void Ack(ibv_cq* cq, unsigned int count);

  void Add(ibv_cq* cq, const FakeCompletion& completion, bool solicited);
  std::vector<FakeCompletion> Poll(ibv_cq* cq, int entries);

 private:
  FakeLedger* const ledger_;
  FakeDevices* const devices_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_COMPLETION_H_
