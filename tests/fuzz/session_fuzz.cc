// Tests a whole session, server or client, whose peer and application follow
// the input.
//
// The input is a byte of options, then a sequence of steps.

#include "tests/fuzz/hostile_peer.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/session_steps.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/victim.h"
#include "transport/fabric/fake/link.h"

namespace penstock {
namespace fuzz {
namespace {

using fabric::fake::Link;
using fabric::fake::LinkOptions;
using fabric::fake::Side;

LinkOptions LifelineOptions() {
  LinkOptions options;
  options.is_lifeline = true;
  return options;
}

LinkOptions FastOptions(bool can_load) {
  LinkOptions options;
  options.can_load = can_load;
  return options;
}

// A run of one input. The hostile peer is side A, and the session side B.
class Run {
 public:
  explicit Run(uint8_t options)
      : options_(options),
        lifeline_(LifelineOptions()),
        fast_(FastOptions(options & kCanLoad)),
        victim_(options & kIsClient,
                options & kIsRpc ? Manner::kRpc : Manner::kGrpc,
                lifeline_.Take(Side::kB)),
        peer_(lifeline_.Take(Side::kA)) {
    victim_.session().Start();
    victim_.session().Flush();
    if (options & kSaysHello) peer_.SendHello(options & kIsClient);
    if (options & kHasPath) AddPath();
    DeliverAll();
  }

  void Steps(Input* input) {
    while (!input->empty()) Take(input);
    DeliverAll();
  }

  void End() {
    victim_.End();
    Require(lifeline_.loans(Side::kB) == 0 && fast_.loans(Side::kB) == 0,
            "every loan comes back");
  }

 private:
  void AddPath() {
    if (fast_taken_) return;
    fast_taken_ = true;
    peer_.AddFast(fast_.Take(Side::kA));
    victim_.session().path().Add("shm", fast_.Take(Side::kB));
    victim_.session().Flush();
    peer_.SendPathReady();
  }

  void Take(Input* input) {
    const auto step = static_cast<Step>(input->Number<uint8_t>() % kSteps);
    switch (step) {
      case kAddPath:
        return AddPath();
      case kDropPath:
        return fast_.Drop();
      case kDropLifeline:
        return lifeline_.Drop();
      case kDeliver:
        return Deliver(input->Number<uint8_t>());
      case kDeliverAll:
        return DeliverAll();
      default:
        break;
    }
    if (step < kFirstOfApplication) {
      peer_.Take(step, input);
    } else {
      victim_.Take(step, input);
    }
  }

  void Deliver(int steps) {
    for (; steps > 0 && (lifeline_.Step() || fast_.Step()); --steps) {
      victim_.session().Flush();
    }
  }

  // Delivers all packets. Stops at a limit far above the needs of any input.
  // Only an endless exchange reaches the limit.
  void DeliverAll() {
    constexpr int kForEver = 1000 * 1000;
    int steps = 0;
    for (; steps < kForEver && (lifeline_.Step() || fast_.Step()); ++steps) {
      victim_.session().Flush();
    }
    Require(steps < kForEver, "it comes to rest");
  }

  const uint8_t options_;
  Link lifeline_;
  Link fast_;
  bool fast_taken_ = false;
  Victim victim_;
  HostilePeer peer_;
};

}  // namespace

std::vector<std::string> Seeds() { return SessionSeeds(); }

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Ignores longer inputs, because short inputs find the same faults.
  if (size > 4096) return 0;
  penstock::fuzz::Input input(data, size);
  penstock::fuzz::Run run(input.Number<uint8_t>());
  run.Steps(&input);
  run.End();
  return 0;
}
