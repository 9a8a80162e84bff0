// Runs the suite over the verbs fabric, on devices in memory: one enforces the
// range of a window, one behaves like Soft-RoCE, and one has no windows.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/harness.h"
#include "tests/transport/fabric/conformance/verbs_pair.h"
#include "tests/transport/fabric/verbs/drain_loop.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"
#include "transport/fabric/verbs/fabric.h"
#include "transport/fabric/verbs/options.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

verbs::Options At(const std::string& address) {
  verbs::Options options;
  options.addresses = {address};
  return options;
}

class FakeVerbsHarness : public Harness {
 public:
  static std::unique_ptr<Harness> Create(verbs::DeviceOptions device) {
    auto harness = absl::WrapUnique(new FakeVerbsHarness(std::move(device)));
    absl::StatusOr<verbs::EndpointPair> pair =
        verbs::ConnectPair(&harness->listening_, &harness->connecting_);
    if (!pair.ok()) {
      ADD_FAILURE() << pair.status();
      return nullptr;
    }
    harness->ends_[0] = std::move(pair->first);
    harness->ends_[1] = std::move(pair->second);
    return harness;
  }
  ~FakeVerbsHarness() override {
    for (Side side : kSides) Kill(side);
    verbs::DrainLoop();
    for (const std::string& misuse : api_->misuse()) ADD_FAILURE() << misuse;
  }

  bool Step() override {
    if (Harness::Step()) return true;
    verbs::DrainLoop();
    return Harness::Step();
  }
  void Settle() override { verbs::DrainLoop(); }
  bool withdraw_ends_reads() const override { return has_windows_; }
  bool survives_bad_reads() const override { return false; }

 private:
  explicit FakeVerbsHarness(verbs::DeviceOptions device)
      : has_windows_(device.has_windows && device.enforce_window_range),
        listening_(At("10.0.0.2"), api_),
        connecting_(At("10.0.0.1"), api_) {
    device.name = "client";
    device.addresses = {"10.0.0.1"};
    api_->AddDevice(device);
    device.name = "server";
    device.addresses = {"10.0.0.2"};
    api_->AddDevice(device);
  }

  // Returns a new network, which is never deleted: a test may still hold parts
  // of a connection that use it.
  static verbs::FakeVerbs* NewApi() {
    static auto* const all = new std::vector<std::unique_ptr<verbs::FakeVerbs>>;
    all->push_back(absl::make_unique<verbs::FakeVerbs>());
    return all->back().get();
  }

  verbs::FakeVerbs* const api_ = NewApi();
  const bool has_windows_;
  verbs::VerbsFabric listening_;
  verbs::VerbsFabric connecting_;
};

FabricCase Fake(const std::string& name, const verbs::DeviceOptions& device) {
  FabricCase fabric{name,
                    [device] { return FakeVerbsHarness::Create(device); }};
  fabric.waking = Waking::kDescriptor;
  return fabric;
}

}  // namespace

std::vector<FabricCase> Fabrics() {
  verbs::DeviceOptions soft_roce;
  soft_roce.enforce_window_range = false;
  soft_roce.last_wqe_events = false;
  verbs::DeviceOptions plain;
  plain.has_windows = false;
  plain.max_inline = 0;
  plain.max_qp_rd_atom = 1;
  return {Fake("Strict", verbs::DeviceOptions()), Fake("SoftRoce", soft_roce),
          Fake("Plain", plain)};
}

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
