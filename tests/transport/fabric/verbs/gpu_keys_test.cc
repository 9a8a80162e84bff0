// Tests which bytes of GPU memory a peer can read without a window, and until
// when.

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/gpu_test.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

class GpuKeysTest : public GpuTest {
 protected:
  void SetUp() override {
    Open();
    ExpectInPlace(0);  // the trial message
  }
  RemoteRegion Expose(const memory::Bytes& bytes) {
    return server()->Expose(memory::Payload(bytes), 1).value().region;
  }
  // Returns true if the client can read the part. If not, the connection is
  // lost.
  bool CanRead(const RemotePart& part) {
    return !ends_->ReadAll(&client(), {part}).empty();
  }
  int regions() { return ends_->api->counts().mrs; }

  const memory::Bytes all_ = gpu_.Put(Text(3 * kGpuTestBytes));
  const memory::Bytes bytes_ = all_.Part(kGpuTestBytes + 1, kGpuTestBytes);
};

TEST_F(GpuKeysTest, KeyIsDeadAfterTheWithdrawal) {
  const RemoteRegion region = Expose(bytes_);
  EXPECT_TRUE(CanRead(region[0]));
  server()->Withdraw(region);
  ends_->Exchange();
  EXPECT_FALSE(CanRead(region[0]));
  EXPECT_EQ(client().events.broken.size(), 1u) << "the queue pair failed";
}

TEST_F(GpuKeysTest, RegionEndsWithTheExposure) {
  const int before = regions();
  const RemoteRegion first = Expose(bytes_);
  const RemoteRegion second = Expose(bytes_);
  EXPECT_EQ(regions(), before + 2);
  EXPECT_NE(first[0].key, second[0].key);
  server()->Withdraw(first);
  EXPECT_EQ(regions(), before + 1);
  EXPECT_TRUE(CanRead(second[0]));
  server()->Withdraw(second);
  EXPECT_EQ(regions(), before);
}

TEST_F(GpuKeysTest, RegionEndsWithTheConnection) {
  Expose(bytes_);
  ends_->Close();
  ASSERT_TRUE(ends_->Connect().ok());
  const int before = regions();
  ExpectInPlace(1);
  EXPECT_EQ(regions(), before);
}

TEST_F(GpuKeysTest, NothingBeforeTheBytesIsReached) {
  RemotePart part = Expose(bytes_)[0];
  --part.offset;
  EXPECT_FALSE(CanRead(part));
}

TEST_F(GpuKeysTest, NothingBehindTheBytesIsReached) {
  RemotePart part = Expose(bytes_)[0];
  ++part.length;
  EXPECT_FALSE(CanRead(part));
}

// Tests that a peer cannot guess the address. With the address, any connection
// of the device could use the key.
TEST_F(GpuKeysTest, AddressCannotBeGuessed) {
  std::set<uint64_t> addresses = {reinterpret_cast<uint64_t>(bytes_.data)};
  for (int i = 0; i < 20; ++i) {
    const RemoteRegion region = Expose(bytes_);
    EXPECT_TRUE(addresses.insert(region[0].offset >> 21).second);
    EXPECT_EQ(region[0].offset % (2 << 20),
              reinterpret_cast<uint64_t>(bytes_.data) % (2 << 20));
    server()->Withdraw(region);
  }
  RemotePart part = Expose(bytes_)[0];
  part.offset = reinterpret_cast<uint64_t>(bytes_.data);
  EXPECT_FALSE(CanRead(part));
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
