// What the suite needs to know of a fabric to check it. To add a fabric, write
// one file with a Harness and Fabrics(); see fake_test.cc.

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

// A pair of connected endpoints in this process. Nothing moves outside Step()
// and Pump(), as far as the fabric lets its user decide that.
class Harness {
 public:
  virtual ~Harness() = default;

  // Returns the end, or null once it is dead.
  Endpoint* end(Side side) const { return ends_[Index(side)].get(); }

  // Does once what the owner of each living end would do: for most fabrics,
  // Poll(). Returns whether there was anything.
  virtual bool Step() {
    bool any = false;
    for (Side side : kSides) {
      if (end(side) != nullptr && end(side)->Poll()) any = true;
    }
    return any;
  }
  // Lets what was sent arrive, as far as it does so by itself: by a device's
  // own work, which Step() would then find.
  virtual void Settle() {}
  // Delivers all that is under way.
  virtual void Pump() {
    int left = kMaxSteps;
    while (--left > 0 && Step()) {
      // An error that repeats in each step need not be reported a million
      // times.
      if (::testing::Test::HasFailure()) left = std::min(left, kFewSteps);
    }
    EXPECT_GT(left, 0) << "the two ends answer one another for ever";
  }
  // Destroys the end, as if its process had died.
  virtual void Kill(Side side) { ends_[Index(side)].reset(); }
  // Breaks the connection under two living ends. Returns false if there is no
  // way to do that.
  virtual bool Cut() { return false; }

  // False where a frame does not fit into a packet: a fake with small limits.
  virtual bool takes_frames() const { return true; }
  // Returns false if a withdrawn region may still be read, and may give bytes
  // that were exposed to the same peer later.
  virtual bool withdraw_ends_reads() const { return true; }
  // Returns false if a read that the peer refuses breaks the connection.
  virtual bool survives_bad_reads() const { return true; }

  // Returns false if reads go to memory of the fabric's only.
  virtual bool reads_into_memory() const { return true; }

  // Returns memory that `side` can expose where it lies, if its fabric has any.
  virtual memory::Block AllocateReachable(Side side, size_t size) {
    return end(side)->AllocateForRead(size).value();
  }
  // Leaves no room for what `side` may expose, until FreeMemory(). Returns
  // false if there always is room.
  virtual bool FillMemory(Side side) { return false; }
  virtual void FreeMemory() {}

 protected:
  static int Index(Side side) { return static_cast<int>(side); }

  std::unique_ptr<Endpoint> ends_[2];

 private:
  static constexpr int kMaxSteps = 10 * 1000 * 1000;
  static constexpr int kFewSteps = 1000;
};

// How the owner of an end learns of input while it sleeps.
enum class Waking {
  kDoorbell,    // the peer asks for it to be rung
  kDescriptor,  // one of wakeup_fds() becomes readable
  kPushed,      // the owner hands input to the endpoint; Poll() does nothing
};

// The parameter of the suite: a fabric, with one set of options.
struct FabricCase {
  std::string name;
  std::function<std::unique_ptr<Harness>()> make;
  // The capability of that name. If true, loading is tested too.
  bool can_load = false;
  Waking waking = Waking::kDoorbell;
};

// Returns the fabrics that a test checks. Each test defines it.
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
