// Memory of GPUs is read by peers where it lies, where the device reaches it;
// else it goes by way of the host, and the connection says why.

#include "transport/fabric/verbs/gpu_direct.h"

#include <cerrno>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/gpu_test.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

using GpuDirectTest = GpuTest;

TEST_F(GpuDirectTest, ByDmabufIsReadWhereItLies) {
  Open();
  EXPECT_TRUE(server()->TakesDeviceMemory());
  EXPECT_FALSE(ServerSays("GPU")) << "nothing is known yet";
  ExpectInPlace(1);
  EXPECT_TRUE(ServerSays(", windows, GPUDirect by dmabuf, "))
      << server()->Describe();
  const int copies = gpu_.copies();
  ExpectInPlace(2);
  EXPECT_EQ(gpu_.copies(), copies) << "only the trial copies";
  EXPECT_TRUE(server()->TakesDeviceMemory());
}

TEST_F(GpuDirectTest, ByPeerMemoryIsReadWhereItLies) {
  Open(WithPeerMemory());
  ExpectInPlace(1);
  ExpectInPlace(2);
  EXPECT_TRUE(ServerSays("GPUDirect by peermem, ")) << server()->Describe();
}

TEST_F(GpuDirectTest, ByPeerMemoryWhereTheLibraryIsOld) {
  DeviceOptions device = WithPeerMemory();
  device.has_dmabuf = true;
  NetworkOptions network;
  network.has_reg_dmabuf_mr = false;
  Open(device, {}, network);
  ExpectInPlace(1);
  EXPECT_TRUE(ServerSays("GPUDirect by peermem")) << server()->Describe();
}

TEST_F(GpuDirectTest, ByPeerMemoryWhereTheGpuExportsNone) {
  DeviceOptions device = WithPeerMemory();
  device.has_dmabuf = true;
  Open(device);
  gpu_.FailExports(absl::FailedPreconditionError("an old driver"));
  ExpectInPlace(1);
  EXPECT_TRUE(ServerSays("GPUDirect by peermem")) << server()->Describe();
}

TEST_F(GpuDirectTest, StagedWhereThereIsNoWay) {
  DeviceOptions device;
  device.has_dmabuf = false;
  Open(device);
  ExpectStaged(1);
  EXPECT_TRUE(
      ServerSays("memory of GPUs staged: dmabuf: server registers no dmabuf; "
                 "peermem: register memory on server: "))
      << server()->Describe();
  EXPECT_FALSE(server()->TakesDeviceMemory());
  ExpectStaged(2);
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes));
  EXPECT_EQ(Prepare(into), nullptr);
}

TEST_F(GpuDirectTest, StagedWhereTheLibraryIsOld) {
  NetworkOptions network;
  network.has_reg_dmabuf_mr = false;
  Open({}, {}, network);
  ExpectStaged(1);
  EXPECT_TRUE(ServerSays("this libibverbs registers no dmabuf"))
      << server()->Describe();
}

// What does not prove anything is tried three times.
TEST_F(GpuDirectTest, StagedAfterThreeTriesWhereTheGpuExportsNone) {
  Open();
  gpu_.FailExports(absl::FailedPreconditionError("no dmabuf of this GPU"));
  ExpectStaged(1);
  ExpectStaged(2);
  EXPECT_TRUE(server()->TakesDeviceMemory());
  ExpectStaged(3);
  EXPECT_FALSE(server()->TakesDeviceMemory());
  EXPECT_TRUE(
      ServerSays("memory of GPUs staged: dmabuf: no dmabuf of this GPU"))
      << server()->Describe();
  gpu_.FailExports(absl::OkStatus());
  ExpectStaged(4);
}

TEST_F(GpuDirectTest, OneFailureIsForgotten) {
  Open();
  ends_->api->FailNext(Call::kRegDmabufMr, ENOMEM);
  ExpectStaged(1);
  ExpectInPlace(2);
}

TEST_F(GpuDirectTest, StagedWhereNoWindowCanBeBound) {
  DeviceOptions device;
  device.binds_gpus = false;
  Open(device);
  for (int i = 0; i < 3; ++i) ExpectStaged(i);
  EXPECT_TRUE(
      ServerSays("GPUDirect by dmabuf, not to send: no window can be "
                 "bound to it"))
      << server()->Describe();
  EXPECT_FALSE(server()->TakesDeviceMemory());
  EXPECT_TRUE(server().events.broken.empty());
}

TEST_F(GpuDirectTest, StagedWhereOtherBytesAreRead) {
  DeviceOptions device;
  device.reads_gpus = false;
  Open(device);
  for (int i = 0; i < 3; ++i) ExpectStaged(i);
  EXPECT_TRUE(ServerSays("not to send: windows on it give the wrong bytes"))
      << server()->Describe();
  EXPECT_FALSE(server()->TakesDeviceMemory());
}

TEST_F(GpuDirectTest, StagedWithoutWindows) {
  Options options;
  options.windows = Windows::kNever;
  Open({}, options);
  EXPECT_FALSE(server()->TakesDeviceMemory());
  ExpectStaged(1);
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes));
  auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  ExpectLands(into, 2);
  EXPECT_TRUE(absl::StrContains(client()->Describe(),
                                "GPUDirect by dmabuf for destinations"))
      << client()->Describe();
}

TEST_F(GpuDirectTest, OfSeveralPiecesEachGoesItsWay) {
  Open();
  const std::string texts[] = {Text(100, 1), Text(kGpuTestBytes, 2),
                               Text(1000, 3), Text(64 * 1024, 4),
                               Text(kGpuTestBytes, 5)};
  size_t in_place = 0;
  const memory::Payload payload =
      Join({Ends::PayloadOf(texts[0]).pieces()[0], gpu_.Put(texts[1]),
            gpu_.Put(texts[2]), gpu_.Put(texts[3]),
            Ends::PayloadOf(texts[4]).pieces()[0]});
  std::string all;
  for (const std::string& text : texts) all += text;
  EXPECT_TRUE(Pass(payload, &in_place) == all);
  EXPECT_EQ(in_place, 2u);
}

// One byte less, and a copy costs less.
TEST_F(GpuDirectTest, LittleMemoryIsStaged) {
  Open();
  size_t in_place = 0;
  const std::string text = Text(memory::kMinDeviceBytes - 1);
  EXPECT_EQ(Pass(memory::Payload(gpu_.Put(text)), &in_place), text);
  EXPECT_EQ(in_place, 0u);
}

// What cannot be copied from the GPU is an error of the message's, not of the
// connection's.
TEST_F(GpuDirectTest, GpuThatFailsEndsTheMessageAlone) {
  DeviceOptions device;
  device.has_dmabuf = false;
  Open(device);
  gpu_.FailCopies(absl::InternalError("the GPU is lost"));
  const auto exposure =
      server()->Expose(memory::Payload(gpu_.Put(Text(kGpuTestBytes))), 1);
  EXPECT_EQ(exposure.status().message(), "the GPU is lost");
  gpu_.FailCopies(absl::OkStatus());
  ExpectStaged(1);
}

TEST_F(GpuDirectTest, AllocationIsRegisteredOnce) {
  Open();
  ExpectInPlace(1);
  const std::string text = Text(8 * kGpuTestBytes);
  const memory::Bytes all = gpu_.Put(text);
  const int before = ends_->api->counts().mrs;
  for (int i = 0; i < 8; ++i) {
    size_t in_place = 0;
    const memory::Payload part(all.Part(i * kGpuTestBytes, kGpuTestBytes));
    EXPECT_TRUE(Pass(part, &in_place) ==
                text.substr(i * kGpuTestBytes, kGpuTestBytes));
    EXPECT_EQ(in_place, 1u);
  }
  EXPECT_EQ(ends_->api->counts().mrs, before + 1);
}

TEST_F(GpuDirectTest, MemoryAllocatedAnewIsNotMistaken) {
  Open();
  const uint8_t* address = nullptr;
  int same = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string text = Text(kGpuTestBytes, i);
    const memory::Bytes bytes = gpu_.Put(text);
    if (bytes.data == address) ++same;
    address = bytes.data;
    size_t in_place = 0;
    EXPECT_TRUE(Pass(memory::Payload(bytes), &in_place) == text);
    EXPECT_EQ(in_place, 1u);
  }
  EXPECT_GT(same, 0) << "the test has shown nothing";
}

TEST_F(GpuDirectTest, MemoryWithoutANameIsRegisteredForItsUseAlone) {
  Open();
  ExpectInPlace(1);
  gpu_.FailShares(absl::FailedPreconditionError("of a pool"));
  const int before = ends_->api->counts().mrs;
  const std::string text = Text(256 * 1024 + 1);
  const memory::Bytes bytes = gpu_.Put(text);
  const Exposure exposure = server()->Expose(memory::Payload(bytes), 1).value();
  EXPECT_EQ(exposure.stable.pieces()[0].data, bytes.data);
  EXPECT_EQ(ends_->api->counts().mrs, before + 1);
  EXPECT_TRUE(ends_->ReadAll(&client(), exposure.region) == text);
  server()->Withdraw(exposure.region);
  ends_->Exchange();
  EXPECT_EQ(ends_->api->counts().mrs, before);
  size_t in_place = 0;
  Pass(memory::Payload(gpu_.Put(Text(256 * 1024))), &in_place);
  EXPECT_EQ(in_place, 0u) << "to copy it costs less";
}

TEST_F(GpuDirectTest, RangeThatCannotBeRegisteredIsStagedAndNamed) {
  Open();
  ExpectInPlace(1);
  gpu_.FailExports(absl::FailedPreconditionError("not of this memory"));
  ExpectStaged(2);
  EXPECT_TRUE(
      ServerSays("GPUDirect by dmabuf, not of all memory: not of this memory"))
      << server()->Describe();
  EXPECT_TRUE(server()->TakesDeviceMemory());
  gpu_.FailExports(absl::OkStatus());
  ExpectInPlace(3);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
