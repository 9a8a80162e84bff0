#include "tests/transport/fabric/verbs/fake/fake_faults.h"

#include <algorithm>

namespace penstock {
namespace fabric {
namespace verbs {

void FakeFaults::FailNext(Call call, int error_number, int after) {
  failures_.push_back({call, error_number, after});
}

int FakeFaults::TakeFailure(Call call) {
  int error_number = 0;
  for (auto failure = failures_.begin(); failure != failures_.end();) {
    if (failure->call != call) {
      ++failure;
    } else if (failure->after > 0) {
      --failure->after;
      ++failure;
    } else if (error_number == 0) {
      error_number = failure->error_number;
      failure = failures_.erase(failure);
    } else {
      ++failure;  // This failure is due, too, at the next call.
    }
  }
  return error_number;
}

void FakeFaults::CompleteNext(ibv_wr_opcode opcode, ibv_wc_status status) {
  completions_.emplace_back(opcode, status);
}

ibv_wc_status FakeFaults::TakeCompletion(ibv_wr_opcode opcode) {
  const auto found =
      std::find_if(completions_.begin(), completions_.end(),
                   [&](const auto& entry) { return entry.first == opcode; });
  if (found == completions_.end()) return IBV_WC_SUCCESS;
  const ibv_wc_status status = found->second;
  completions_.erase(found);
  return status;
}

void FakeFaults::Cut(const FakeDevice* a, const FakeDevice* b) {
  cuts_.insert(std::minmax(a, b));
}

void FakeFaults::Restore(const FakeDevice* a, const FakeDevice* b) {
  cuts_.erase(std::minmax(a, b));
}

bool FakeFaults::IsUp(const FakeDevice* a, const FakeDevice* b) const {
  if (!a->port_up || !b->port_up) return false;
  return cuts_.count(std::minmax(a, b)) == 0;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
