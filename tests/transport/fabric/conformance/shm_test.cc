// Runs the suite over shared memory. Both ends are in this process. Each has
// its own arena, as in two processes.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "tests/transport/fabric/conformance/harness.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/options.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

// The size of the arena, in bytes: sixteen of the suite's largest payloads. If
// memory were not returned to the arena, the arena would soon be full.
constexpr uint64_t kArenaBytes = 16 * 1024 * 1024;

class ShmHarness : public Harness {
 public:
  // Returns a harness. Returns null, and fails the test, if there is no shared
  // memory.
  static std::unique_ptr<Harness> Create(uint32_t ring_bytes) {
    auto harness = absl::WrapUnique(new ShmHarness(ring_bytes));
    std::unique_ptr<shm::Pair> pair =
        shm::MakePair(harness->fabrics_[0].get(), harness->fabrics_[1].get());
    if (pair == nullptr) return nullptr;
    harness->ends_[0] = std::move(pair->listening.endpoint);
    harness->ends_[1] = std::move(pair->connecting.endpoint);
    return harness;
  }

  memory::Block AllocateReachable(Side side, size_t size) override {
    std::shared_ptr<shm::ArenaLease> lease =
        arenas_[Index(side)]->Allocate(size).value();
    uint8_t* const data = lease->data();
    return {std::shared_ptr<uint8_t>(std::move(lease), data), size};
  }
  bool FillMemory(Side side) override {
    shm::Arena* arena = arenas_[Index(side)].get();
    for (uint64_t size = kArenaBytes; size >= 64; size /= 2) {
      for (auto lease = arena->Allocate(size); lease.ok();
           lease = arena->Allocate(size)) {
        leases_.push_back(*std::move(lease));
      }
    }
    return true;
  }
  void FreeMemory() override { leases_.clear(); }

 private:
  explicit ShmHarness(uint32_t ring_bytes) {
    for (Side side : kSides) {
      shm::Options options;
      options.ring_bytes = ring_bytes;
      options.arena = shm::Arena::Create(kArenaBytes);
      arenas_[Index(side)] = options.arena;
      fabrics_[Index(side)] = absl::make_unique<shm::ShmFabric>(options);
    }
  }

  std::shared_ptr<shm::Arena> arenas_[2];
  std::unique_ptr<shm::ShmFabric> fabrics_[2];
  std::vector<std::shared_ptr<shm::ArenaLease>> leases_;
};

FabricCase Shm(const std::string& name, uint32_t ring_bytes) {
  return {name, [ring_bytes] { return ShmHarness::Create(ring_bytes); },
          /*can_load=*/true};
}

}  // namespace

std::vector<FabricCase> Fabrics() {
  return {Shm("Shm", shm::Options().ring_bytes),
          Shm("ShmWithTheSmallestRing", 128 * 1024)};
}

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
