// Runs the suite over a real device, staged and with windows. docs/testing.md
// says how to get a device.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/harness.h"
#include "tests/transport/fabric/conformance/verbs_pair.h"
#include "tests/vm/windows.h"
#include "transport/fabric/verbs/fabric.h"
#include "transport/fabric/verbs/options.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

// The time without arrivals after which the test assumes that everything was
// delivered. Needed because a device works in the background. Far longer than
// an emulated processor takes for a packet.
constexpr absl::Duration kQuiet = absl::Milliseconds(30);

class VerbsHarness : public Harness {
 public:
  static std::unique_ptr<Harness> Create(const verbs::Options& listening,
                                         const verbs::Options& connecting) {
    auto harness = absl::WrapUnique(new VerbsHarness(listening, connecting));
    absl::StatusOr<verbs::EndpointPair> pair =
        verbs::ConnectPair(&harness->listening_, &harness->connecting_);
    if (!pair.ok()) {
      ADD_FAILURE() << pair.status();
      return nullptr;
    }
    EXPECT_TRUE(UsesWindowsAsWanted(pair->first->Describe()))
        << pair->first->Describe();
    harness->ends_[0] = std::move(pair->first);
    harness->ends_[1] = std::move(pair->second);
    return harness;
  }

  bool Step() override {
    const absl::Time end = absl::Now() + kQuiet;
    do {
      if (Harness::Step()) return true;
      absl::SleepFor(absl::Microseconds(100));
    } while (absl::Now() < end);
    return false;
  }
  void Settle() override { absl::SleepFor(kQuiet); }
  bool withdraw_ends_reads() const override { return TrustsWindows(); }
  bool survives_bad_reads() const override { return false; }

 private:
  VerbsHarness(const verbs::Options& listening,
               const verbs::Options& connecting)
      : listening_(listening), connecting_(connecting) {}

  verbs::VerbsFabric listening_;
  verbs::VerbsFabric connecting_;
};

FabricCase Verbs(const std::string& name, const std::string& listening,
                 const std::string& connecting) {
  verbs::Options a, b;
  a.device = listening;
  b.device = connecting;
  FabricCase fabric{name, [a, b] { return VerbsHarness::Create(a, b); }};
  fabric.waking = Waking::kDescriptor;
  return fabric;
}

}  // namespace

std::vector<FabricCase> Fabrics() {
  return {Verbs("OneDeviceLooped", "rxe0", "rxe0"),
          Verbs("TwoDevicesCabled", "rxe1", "rxe0")};
}

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
