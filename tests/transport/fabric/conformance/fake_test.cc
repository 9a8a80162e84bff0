// Runs the suite over the fake fabric. Each set of options makes one limit
// effective.

#include <memory>
#include <string>
#include <vector>

#include "absl/memory/memory.h"
#include "tests/transport/fabric/conformance/harness.h"
#include "transport/fabric/fake/link.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

fake::Side ToFake(Side side) {
  return side == Side::kA ? fake::Side::kA : fake::Side::kB;
}

fake::LinkOptions WithDestinations(fake::LinkOptions options) {
  options.min_destination_bytes = 1;
  return options;
}

class FakeHarness : public Harness {
 public:
  explicit FakeHarness(const fake::LinkOptions& options)
      : link_(WithDestinations(options)),
        takes_frames_(options.max_packet_bytes >= wire::kMaxFrameBytes) {
    for (Side side : kSides) ends_[Index(side)] = link_.Take(ToFake(side));
  }

  bool Cut() override {
    link_.Drop();
    return true;
  }
  bool takes_frames() const override { return takes_frames_; }
  bool FillMemory(Side side) override {
    link_.FailNthExpose(ToFake(side), 1);
    return true;
  }
  // Reverses the order in which reads end: the latest read ends first.
  void ReverseReads() {
    for (Side side : kSides) {
      link_.SetReadOrder(ToFake(side),
                         [](size_t waiting) { return waiting - 1; });
    }
  }

 private:
  fake::Link link_;
  const bool takes_frames_;
};

FabricCase Fake(const std::string& name, const fake::LinkOptions& options) {
  return {name, [options] { return absl::make_unique<FakeHarness>(options); },
          options.can_load};
}

FabricCase FakeWithReversedReads() {
  return {"FakeReversesReads", [] {
            fake::LinkOptions options;
            options.max_reads = 8;
            auto harness = absl::make_unique<FakeHarness>(options);
            harness->ReverseReads();
            return harness;
          }};
}

}  // namespace

std::vector<FabricCase> Fabrics() {
  fake::LinkOptions loads;
  loads.can_load = true;
  fake::LinkOptions one_credit;
  one_credit.credits = 1;
  one_credit.can_load = true;
  one_credit.max_packet_bytes = wire::kMaxFrameBytes;
  fake::LinkOptions lifeline;
  lifeline.is_lifeline = true;
  lifeline.credits = 3;
  fake::LinkOptions small;
  small.max_packet_bytes = 64;
  small.read_chunk_bytes = 1000;
  small.max_reads = 3;
  return {Fake("Fake", fake::LinkOptions()),     Fake("FakeLoads", loads),
          Fake("FakeWithOneCredit", one_credit), Fake("FakeLifeline", lifeline),
          Fake("FakeWithSmallLimits", small),    FakeWithReversedReads()};
}

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
