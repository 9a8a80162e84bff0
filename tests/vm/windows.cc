#include "tests/vm/windows.h"

#include <cstdlib>

#include "transport/fabric/verbs/devices.h"
#include "transport/fabric/verbs/window_trial.h"

namespace penstock {
namespace {

using fabric::verbs::Devices;
using fabric::verbs::RangeRule;

// Returns true if windows were requested. Requests count only in the virtual
// machine, because other machines may have a real adapter.
bool IsAsked() {
  return std::getenv("RDMA_VM") != nullptr &&
         std::getenv("RDMA_VM_WINDOWS") != nullptr;
}

const bool trusts_windows = [] {
  if (IsAsked()) Devices::SetRangeRuleForTest(RangeRule::kForgiven);
  return IsAsked();
}();

}  // namespace

bool TrustsWindows() { return trusts_windows; }

bool UsesWindowsAsWanted(const std::string& description) {
  const char* const wanted =
      TrustsWindows() ? ", windows for a test" : ", staged: ";
  return description.find(wanted) != std::string::npos;
}

}  // namespace penstock
