// Two ends of shared memory in one process, each with its own devices.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_DEVICE_PAIR_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_DEVICE_PAIR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/memory/bytes.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace fabric {
namespace shm {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr size_t kMany = 100;

inline std::string Content(size_t size, uint8_t seed) {
  std::string content(size, '\0');
  PatternPayload(size, seed).CopyTo(reinterpret_cast<uint8_t*>(&content[0]));
  return content;
}

// Returns the payload's bytes from any location.
inline std::string Read(const memory::Payload& payload) {
  std::string content(payload.size(), '\0');
  const absl::Status copied =
      payload.CopyFromAnywhereTo(reinterpret_cast<uint8_t*>(&content[0]));
  EXPECT_TRUE(copied.ok()) << copied;
  return content;
}

// A test with a lender and a borrower. `theirs_` are the lender's devices, and
// `ours_` the borrower's.
class ShmDevices : public ::testing::Test {
 protected:
  static Options With(memory::DeviceAccess* devices,
                      std::shared_ptr<Arena> arena) {
    Options options;
    options.devices = devices;
    options.arena = std::move(arena);
    return options;
  }
  void Connect(const Options& lender, const Options& borrower) {
    lending_fabric_ = absl::make_unique<ShmFabric>(lender);
    borrowing_fabric_ = absl::make_unique<ShmFabric>(borrower);
    pair_ = MakePair(lending_fabric_.get(), borrowing_fabric_.get());
    ASSERT_NE(pair_, nullptr);
  }
  void Connect() { Connect(With(&theirs_, arena_), With(&ours_, nullptr)); }

  Endpoint* lender() { return pair_->listening.endpoint.get(); }
  Endpoint* borrower() { return pair_->connecting.endpoint.get(); }

  memory::Bytes OnDevice(size_t size, uint8_t seed) {
    return theirs_.Put(Content(size, seed));
  }
  static memory::Bytes OnHost(size_t size, uint8_t seed) {
    return PatternPayload(size, seed).pieces()[0];
  }

  RemoteRegion Expose(const memory::Payload& payload,
                      size_t max_parts = kMany) {
    absl::StatusOr<Exposure> exposure = lender()->Expose(payload, max_parts);
    EXPECT_TRUE(exposure.ok()) << exposure.status();
    return exposure.ok() ? exposure->region : RemoteRegion();
  }
  memory::Payload Load(const RemoteRegion& region) {
    absl::StatusOr<memory::Payload> loaded = borrower()->Load(region);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : memory::Payload();
  }
  // Sends the piece in place, uses it, and releases it.
  void Pass(const memory::Bytes& piece) {
    const memory::Payload loaded = Load(Expose(memory::Payload(piece)));
    EXPECT_FALSE(loaded.on_host());
  }
  bool IsLentInPlace(const memory::Bytes& piece) {
    const RemoteRegion region = Expose(memory::Payload(piece));
    (void)Load(region);
    lender()->Poll();
    return IsDeviceId(SegmentOfKey(region[0].key));
  }
  void ExpectCopied(const memory::Bytes& piece) {
    const RemoteRegion region = Expose(memory::Payload(piece));
    EXPECT_FALSE(IsDeviceId(SegmentOfKey(region[0].key)));
    const memory::Payload loaded = Load(region);
    EXPECT_TRUE(loaded.on_host());
    EXPECT_EQ(Read(loaded), theirs_.Get(piece.span()));
  }
  void ExpectDescribes(Endpoint* endpoint, const std::string& text) {
    EXPECT_TRUE(absl::StrContains(endpoint->Describe(), text))
        << endpoint->Describe();
  }
  // Returns true once unused memory is freed.
  bool IsFreed(const std::weak_ptr<const void>& owner) {
    return WaitUntil([&] {
      lender()->Poll();
      return owner.expired();
    });
  }

  memory::FakeDeviceAccess theirs_;
  memory::FakeDeviceAccess ours_;
  std::shared_ptr<Arena> arena_ = Arena::Create(64 * kMiB);
  std::unique_ptr<ShmFabric> lending_fabric_;
  std::unique_ptr<ShmFabric> borrowing_fabric_;
  std::unique_ptr<Pair> pair_;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_SHM_DEVICE_PAIR_H_
