// Tests the buffers that are posted to receive packets.

#include "transport/fabric/verbs/receives.h"

#include <cerrno>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr uint32_t kCount = 4;
constexpr uint32_t kBytes = 128;

class ReceivesTest : public testing::Test {
 protected:
  ~ReceivesTest() override {
    pool_.reset();
    domain_.reset();
    EXPECT_EQ(verbs_.leaks(), std::vector<std::string>());
  }

  absl::StatusOr<std::unique_ptr<Receives>> Create() {
    return Receives::Create(&verbs_, domain_->get(), pool_.get(), kCount,
                            kBytes);
  }

  FakeVerbs verbs_;
  std::shared_ptr<const ProtectionDomain> domain_ =
      std::make_shared<const ProtectionDomain>(
          *AllocPd(&verbs_, verbs_.AddDevice({"mlx5_0", {"10.0.0.1"}})));
  std::shared_ptr<Pool> pool_ =
      Pool::Create(&verbs_, domain_, IBV_ACCESS_LOCAL_WRITE, 1 << 20);
};

TEST_F(ReceivesTest, AllArePostedFromTheStart) {
  auto receives = Create();
  ASSERT_TRUE(receives.ok()) << receives.status();
  // Posts one receive more than the queue has room for.
  const absl::Status more = (*receives)->Post(0);
  EXPECT_EQ(more.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(more.message().find("post a receive on mlx5_0"),
            absl::string_view::npos)
      << more;
}

TEST_F(ReceivesTest, BuffersAreApart) {
  auto receives = *Create();
  for (uint64_t i = 0; i + 1 < kCount; ++i) {
    EXPECT_EQ(receives->Buffer(i, kBytes).data() + kBytes,
              receives->Buffer(i + 1, 1).data());
  }
}

TEST_F(ReceivesTest, BufferHoldsWhatTheCompletionSays) {
  auto receives = *Create();
  EXPECT_EQ(receives->Buffer(0, 0).size(), 0u);
  EXPECT_EQ(receives->Buffer(kCount - 1, kBytes).size(), kBytes);
  EXPECT_TRUE(receives->Buffer(0, kBytes + 1).empty());
}

TEST_F(ReceivesTest, BogusCompletionHasNoBuffer) {
  auto receives = *Create();
  for (const uint64_t bogus :
       {uint64_t{kCount}, ~uint64_t{0}, uint64_t{1} << 32}) {
    EXPECT_TRUE(receives->Buffer(bogus, 1).empty()) << bogus;
  }
}

TEST_F(ReceivesTest, EveryFailureInTheMakingIsGivenBack) {
  for (const Call call : {Call::kRegMr, Call::kCreateSrq, Call::kPostSrqRecv}) {
    verbs_.FailNext(call, ENOMEM);
    EXPECT_EQ(Create().status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(verbs_.counts().srqs, 0);
  }
  verbs_.FailNext(Call::kPostSrqRecv, EINVAL, /*after=*/kCount - 1);
  EXPECT_FALSE(Create().ok()) << "the last";
  EXPECT_TRUE(Create().ok());
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
