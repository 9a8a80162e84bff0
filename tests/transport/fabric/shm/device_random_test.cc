// Tests random programs: messages whose pieces lie on hosts and devices, and
// failures.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/device_pair.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// Passes messages of random pieces. Some pieces are held for long. Each call
// that can fail sometimes fails. A message that cannot be lent or loaded is
// skipped, where a session would send it over the lifeline. Each message that
// arrives must be right, and nothing may remain at the end.
class ShmDevicesAtRandom : public ShmDevices,
                           public ::testing::WithParamInterface<int> {
 protected:
  size_t Pick(size_t below) { return random_() % below; }
  bool OneIn(size_t n) { return Pick(n) == 0; }

  void AddPiece(memory::Payload* payload, std::string* expected) {
    const uint8_t seed = Pick(256);
    if (OneIn(2)) {
      const size_t size = 1 + Pick(20 * kKiB);
      payload->Append(OnHost(size, seed));
      *expected += Content(size, seed);
      return;
    }
    if (allocations_.size() < 80 && OneIn(2)) {
      allocations_.push_back(OnDevice(1 + Pick(256 * kKiB), seed));
    }
    if (allocations_.empty()) return;
    memory::Bytes& whole = allocations_[Pick(allocations_.size())];
    const size_t offset = Pick(whole.size);
    const memory::Bytes part =
        whole.Part(offset, 1 + Pick(whole.size - offset));
    *expected += theirs_.Get(part.span());
    payload->Append(part);
    if (OneIn(20)) {
      std::swap(whole, allocations_.back());
      allocations_.pop_back();
    }
  }
  void ChangeFailures() {
    const absl::Status error = absl::InternalError("by chance");
    theirs_.FailShares(OneIn(4) ? error : absl::OkStatus());
    theirs_.FailCopies(OneIn(8) ? error : absl::OkStatus());
    if (OneIn(200)) ours_.FailOpens(error);
  }
  void SendOne() {
    memory::Payload payload;
    std::string expected;
    const size_t count = 1 + Pick(6);
    for (size_t i = 0; i < count; ++i) AddPiece(&payload, &expected);
    if (payload.size() == 0) return;
    const auto exposure = lender()->Expose(payload, 1 + Pick(8));
    if (!exposure.ok()) {
      ASSERT_TRUE(absl::IsResourceExhausted(exposure.status()));
      return;
    }
    const auto loaded = borrower()->Load(exposure->region);
    if (!loaded.ok()) {
      EXPECT_TRUE(absl::IsInternal(loaded.status())) << loaded.status();
      borrower()->GiveBack(exposure->region);
      return;
    }
    ++loads_;
    on_devices_ += !loaded->on_host();
    held_.emplace_back(*loaded, expected);
  }
  void LookAtOne() {
    if (held_.empty()) return;
    std::swap(held_[Pick(held_.size())], held_.back());
    ASSERT_EQ(Read(held_.back().first), held_.back().second);
    held_.pop_back();
  }

  std::mt19937 random_;
  std::vector<memory::Bytes> allocations_;
  std::vector<std::pair<memory::Payload, std::string>> held_;
  int loads_ = 0;
  int on_devices_ = 0;
};

TEST_P(ShmDevicesAtRandom, EachMessageIsRightAndNothingIsLeft) {
  const char* const chosen = std::getenv("SHM_DEVICES_SEED");
  const int seed = chosen != nullptr ? std::atoi(chosen) : GetParam();
  std::cout << "SHM_DEVICES_SEED=" << seed << std::endl;
  random_.seed(seed);
  Connect();
  for (int step = 0; step < 300; ++step) {
    if (OneIn(20)) ChangeFailures();
    ASSERT_NO_FATAL_FAILURE(SendOne());
    while (held_.size() > 40 || (!held_.empty() && OneIn(3))) {
      ASSERT_NO_FATAL_FAILURE(LookAtOne());
    }
    if (OneIn(2)) lender()->Poll();
  }
  EXPECT_GT(loads_, 50);
  EXPECT_GT(on_devices_, 0);
  while (!held_.empty()) ASSERT_NO_FATAL_FAILURE(LookAtOne());
  std::vector<std::weak_ptr<const void>> freed;
  for (const memory::Bytes& one : allocations_) freed.push_back(one.owner);
  allocations_.clear();
  for (const auto& one : freed) ASSERT_TRUE(IsFreed(one));
  EXPECT_TRUE(WaitUntil([this] {
    lender()->Poll();
    return arena_->used() == 0;
  }));
  EXPECT_TRUE(pair_->listening.events.broken.empty());
  EXPECT_TRUE(pair_->connecting.events.broken.empty());
  pair_.reset();
  EXPECT_TRUE(WaitUntil([this] { return ours_.open_now() == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ShmDevicesAtRandom, ::testing::Range(1, 21));

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
