// The interface between the suite and a fabric. To add a fabric, write one file
// with a Harness and Fabrics(); see fake_test.cc.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_HARNESS_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_HARNESS_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace conformance {

enum class Side { kA, kB };

constexpr Side kSides[] = {Side::kA, Side::kB};

inline Side Other(Side side) { return side == Side::kA ? Side::kB : Side::kA; }

// A pair of connected endpoints in this process. As far as the fabric allows,
// data moves only in Step() and Pump().
class Harness {
 public:
  virtual ~Harness() = default;

  // Returns the endpoint of `side`, or null after Kill().
  Endpoint* end(Side side) const { return ends_[Index(side)].get(); }

  // Makes one step of the owner of each living end, usually Poll(). Returns
  // true if there was work.
  virtual bool Step() {
    bool any = false;
    for (Side side : kSides) {
      if (end(side) != nullptr && end(side)->Poll()) any = true;
    }
    return any;
  }
  // Waits until a device's own work has made sent data arrive.
  virtual void Settle() {}
  // Delivers all data in flight.
  virtual void Pump() {
    int left = kMaxSteps;
    while (--left > 0 && Step()) {
      // Limits the reports of an error that repeats in each step.
      if (::testing::Test::HasFailure()) left = std::min(left, kFewSteps);
    }
    EXPECT_GT(left, 0) << "the two ends answer one another for ever";
  }
  // Destroys the end, as if its process had died.
  virtual void Kill(Side side) { ends_[Index(side)].reset(); }
  // Breaks the connection between two living ends. Returns false if the fabric
  // cannot do this.
  virtual bool Cut() { return false; }

  // Returns false if a frame does not fit into a packet. This is possible only
  // for a fake with small limits.
  virtual bool takes_frames() const { return true; }
  // Returns false if reads of a withdrawn region may succeed. Such a read may
  // return bytes that were exposed later to the same peer.
  virtual bool withdraw_ends_reads() const { return true; }
  // Returns false if a refused read breaks the connection.
  virtual bool survives_bad_reads() const { return true; }

  // Returns false if reads can only go to the fabric's own memory.
  virtual bool reads_into_memory() const { return true; }

  // Returns memory that `side` can expose in place, if its fabric has such
  // memory.
  virtual memory::Block AllocateReachable(Side side, size_t size) {
    return end(side)->AllocateForRead(size).value();
  }
  // Uses up the memory for exposures of `side`, until FreeMemory(). Returns
  // false if the memory is unlimited.
  virtual bool FillMemory(Side side) { return false; }
  virtual void FreeMemory() {}

 protected:
  static int Index(Side side) { return static_cast<int>(side); }

  std::unique_ptr<Endpoint> ends_[2];

 private:
  static constexpr int kMaxSteps = 10 * 1000 * 1000;
  static constexpr int kFewSteps = 1000;
};

// The way in which a sleeping owner learns of input.
enum class Waking {
  kDoorbell,    // the peer requests a doorbell
  kDescriptor,  // a descriptor of wakeup_fds() becomes readable
  kPushed,      // the owner passes input to the endpoint; Poll() does nothing
};

// The parameter of the suite: a fabric, with one set of options.
struct FabricCase {
  std::string name;
  std::function<std::unique_ptr<Harness>()> make;
  // True if the fabric can load regions (Capabilities::can_load). Loading is
  // then tested, too.
  bool can_load = false;
  Waking waking = Waking::kDoorbell;
};

// Returns the fabrics to test. Each test defines it.
std::vector<FabricCase> Fabrics();

inline std::vector<FabricCase> FabricsWhere(
    const std::function<bool(const FabricCase&)>& wanted) {
  std::vector<FabricCase> fabrics;
  for (const FabricCase& fabric : Fabrics()) {
    if (wanted(fabric)) fabrics.push_back(fabric);
  }
  return fabrics;
}

inline void PrintTo(const FabricCase& fabric, std::ostream* out) {
  *out << fabric.name;
}

inline std::string NameOf(const ::testing::TestParamInfo<FabricCase>& info) {
  return info.param.name;
}

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_HARNESS_H_
