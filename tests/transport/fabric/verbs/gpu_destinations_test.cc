// Tests memory of GPUs that READs write to, if the device reaches that memory.

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/gpu_test.h"
#include "transport/memory/destinations.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

using GpuDestinationsTest = GpuTest;

TEST_F(GpuDestinationsTest, ReadsLandInTheGpuAndAreSeenThere) {
  gpu_.NeedFlushes();
  Open();
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes));
  const auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  EXPECT_TRUE(gpu_.Get(into.span()) == Text(kGpuTestBytes))
      << "the trial left a trace";
  const int copies = gpu_.copies();
  ExpectLands(into, 1);
  ExpectLands(into, 2);
  EXPECT_EQ(gpu_.copies(), copies);
  EXPECT_TRUE(absl::StrContains(client()->Describe(), "GPUDirect by dmabuf"))
      << client()->Describe();
}

TEST_F(GpuDestinationsTest, ReadsLandByPeerMemory) {
  Open(WithPeerMemory());
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes));
  const auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  ExpectLands(into, 1);
}

TEST_F(GpuDestinationsTest, ReadsLandByPeerMemoryWhereTheLibraryIsOld) {
  DeviceOptions device = WithPeerMemory();
  device.has_dmabuf = true;
  NetworkOptions network;
  network.has_reg_dmabuf_mr = false;
  Open(device, {}, network);
  EXPECT_NE(Prepare(gpu_.Put(Text(kGpuTestBytes))), nullptr);
}

TEST_F(GpuDestinationsTest, ReadsLandByPeerMemoryWhereTheGpuExportsNone) {
  DeviceOptions device = WithPeerMemory();
  device.has_dmabuf = true;
  Open(device);
  gpu_.FailExports(absl::FailedPreconditionError("an old driver"));
  EXPECT_NE(Prepare(gpu_.Put(Text(kGpuTestBytes))), nullptr);
}

TEST_F(GpuDestinationsTest, NothingLandsWhereThereIsNoWay) {
  DeviceOptions device;
  device.has_dmabuf = false;
  Open(device);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Prepare(gpu_.Put(Text(kGpuTestBytes))), nullptr);
  }
  EXPECT_TRUE(absl::StrContains(
      client()->Describe(),
      "memory of GPUs staged, not for destinations: dmabuf: client registers "
      "no dmabuf; peermem: register memory on client: Bad address"))
      << client()->Describe();
}

TEST_F(GpuDestinationsTest, APieceOfOneGpuLandsInAnother) {
  Open();
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes, 1));
  const auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  const Exposure exposure =
      server()
          ->Expose(memory::Payload(gpu_.Put(Text(kGpuTestBytes, 2))), 1)
          .value();
  client()->Read(exposure.region[0], 0,
                 {const_cast<uint8_t*>(into.data), kGpuTestBytes}, 1);
  ends_->Exchange();
  EXPECT_TRUE(client().events.Succeeded(1));
  EXPECT_TRUE(gpu_.Get(into.span()) == Text(kGpuTestBytes, 2));
}

TEST_F(GpuDestinationsTest, NothingLandsWhereItWouldNotCome) {
  DeviceOptions device;
  device.writes_gpus = false;
  Open(device);
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Prepare(into), nullptr);
  EXPECT_TRUE(gpu_.Get(into.span()) == Text(kGpuTestBytes));
  EXPECT_TRUE(absl::StrContains(client()->Describe(),
                                "not for destinations: dmabuf: bytes that are "
                                "read into it do not arrive; peermem: "))
      << client()->Describe();
  ExpectInPlace(1);
}

TEST_F(GpuDestinationsTest, NothingLandsWhereItWouldNotBeSeen) {
  Open();
  gpu_.FailFlushes(absl::FailedPreconditionError("no flush"));
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes));
  EXPECT_EQ(Prepare(into), nullptr);
  gpu_.FailFlushes(absl::OkStatus());
  EXPECT_NE(Prepare(into), nullptr);
}

TEST_F(GpuDestinationsTest, FlushThatFailsFailsTheReadAlone) {
  Open();
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes));
  const auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  const Exposure exposure =
      server()->Expose(Ends::PayloadOf(Text(kGpuTestBytes)), 1).value();
  gpu_.FailFlushes(absl::InternalError("the GPU is lost"));
  client()->Read(exposure.region[0], 0,
                 {const_cast<uint8_t*>(into.data), kGpuTestBytes}, 100);
  ends_->Exchange();
  EXPECT_TRUE(client().events.Failed(100));
  EXPECT_EQ(client().events.reads[100].message(), "the GPU is lost");
  EXPECT_TRUE(client().events.broken.empty());
  gpu_.FailFlushes(absl::OkStatus());
  ExpectLands(into, 3);
}

TEST_F(GpuDestinationsTest, LittleMemoryIsNoDestination) {
  Open();
  EXPECT_EQ(Prepare(gpu_.Put(Text(memory::kMinDeviceBytes - 1))), nullptr);
  EXPECT_NE(Prepare(gpu_.Put(Text(memory::kMinDeviceBytes))), nullptr);
}

// Tests that a READ in progress keeps the registration.
TEST_F(GpuDestinationsTest, ReadOutlivesWhatWasPrepared) {
  Open();
  // Makes the memory anonymous, so that its registration is not kept.
  gpu_.FailShares(absl::FailedPreconditionError("of a pool"));
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes));
  auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  const Exposure exposure =
      server()->Expose(Ends::PayloadOf(Text(kGpuTestBytes, 1)), 1).value();
  ends_->api->Hold();
  client()->Read(exposure.region[0], 0,
                 {const_cast<uint8_t*>(into.data), kGpuTestBytes}, 1);
  prepared.reset();
  ends_->api->Release();
  ends_->Exchange();
  EXPECT_TRUE(client().events.Succeeded(1));
  EXPECT_TRUE(gpu_.Get(into.span()) == Text(kGpuTestBytes, 1));
  EXPECT_TRUE(ends_->api->misuse().empty());
}

// Tests a READ into GPU memory that nobody has prepared, which must fail.
TEST_F(GpuDestinationsTest, ReadIntoMemoryThatIsNotPreparedFails) {
  Open();
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes));
  const Exposure exposure =
      server()->Expose(Ends::PayloadOf(Text(kGpuTestBytes, 1)), 1).value();
  client()->Read(exposure.region[0], 0,
                 {const_cast<uint8_t*>(into.data), kGpuTestBytes}, 1);
  ends_->Exchange();
  EXPECT_TRUE(client().events.Failed(1));
  EXPECT_TRUE(client().events.broken.empty());
}

TEST_F(GpuDestinationsTest, LostConnectionEndsReadsBeforeTheirMemory) {
  Open();
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes));
  auto prepared = Prepare(into);
  const Exposure exposure =
      server()
          ->Expose(memory::Payload(gpu_.Put(Text(kGpuTestBytes, 1))), 1)
          .value();
  ends_->api->Hold();
  client()->Read(exposure.region[0], 0,
                 {const_cast<uint8_t*>(into.data), kGpuTestBytes}, 1);
  ends_->api->RemoveDevice("client");
  EXPECT_TRUE(
      ends_->ExchangeUntil([&] { return !client().events.broken.empty(); }));
  EXPECT_TRUE(client().events.Failed(1));
  EXPECT_FALSE(client()->TakesDeviceMemory());
  prepared.reset();
  ends_->api->Release();
  ends_->Exchange();
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
