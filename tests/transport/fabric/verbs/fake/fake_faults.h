// The failures that a test has requested.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_FAULTS_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_FAULTS_H_

#include <infiniband/verbs.h>

#include <list>
#include <set>
#include <utility>

#include "tests/transport/fabric/verbs/fake/fake_objects.h"
#include "tests/transport/fabric/verbs/fake/fake_options.h"

namespace penstock {
namespace fabric {
namespace verbs {

class FakeFaults {
 public:
  void FailNext(Call call, int error_number, int after);
  // Counts the call. Returns the error number with which it must fail, or 0.
  int TakeFailure(Call call);
  size_t failures_to_come() const { return failures_.size(); }

  void CompleteNext(ibv_wr_opcode opcode, ibv_wc_status status);
  // Returns the requested status for the opcode, or IBV_WC_SUCCESS.
  ibv_wc_status TakeCompletion(ibv_wr_opcode opcode);

  void Cut(const FakeDevice* a, const FakeDevice* b);
  void Restore(const FakeDevice* a, const FakeDevice* b);
  // Returns true if the two devices can communicate.
  bool IsUp(const FakeDevice* a, const FakeDevice* b) const;

 private:
  struct Failure {
    Call call;
    int error_number;
    int after;
  };
  using Link = std::pair<const FakeDevice*, const FakeDevice*>;

  std::list<Failure> failures_;
  std::list<std::pair<ibv_wr_opcode, ibv_wc_status>> completions_;
  std::set<Link> cuts_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_FAULTS_H_
