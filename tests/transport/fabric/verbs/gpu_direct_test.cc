// Tests that peers read GPU memory in place if the device reaches it. Otherwise
// the bytes go through the host, and the connection reports the reason.

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
  EXPECT_TRUE(ServerSays(", windows, GPUDirect by dmabuf to send, "))
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
  EXPECT_TRUE(ServerSays("GPUDirect by peermem to send, "))
      << server()->Describe();
}

// Tests a device that reaches GPU memory in both ways. Windows on a region that
// is kept cost less than a new region for each message.
TEST_F(GpuDirectTest, ByPeerMemoryWhereThereAreBothWays) {
  DeviceOptions device = WithPeerMemory();
  device.has_dmabuf = true;
  Open(device);
  ExpectInPlace(1);
  const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes));
  EXPECT_NE(Prepare(into), nullptr);
  EXPECT_TRUE(ServerSays("GPUDirect by peermem to send"))
      << server()->Describe();
  EXPECT_TRUE(absl::StrContains(client()->Describe(),
                                "GPUDirect by dmabuf for destinations"))
      << client()->Describe();
}

// Sends memory that was received before. The region for receiving cannot have a
// window.
TEST_F(GpuDirectTest, WhatWasReceivedByOneWayIsSentByTheOther) {
  DeviceOptions device = WithPeerMemory();
  device.has_dmabuf = true;
  Open(device);
  const std::string text = Text(kGpuTestBytes);
  const memory::Bytes bytes = gpu_.Put(text);
  auto* const data = const_cast<uint8_t*>(bytes.data);
  ExpectInPlace(1);
  EXPECT_NE(server()->PrepareToRead({data, bytes.size, &gpu_}), nullptr);
  size_t in_place = 0;
  EXPECT_TRUE(Pass(memory::Payload(bytes), &in_place) == text);
  EXPECT_EQ(in_place, 1u);
}

// Tests that the fabric tries a way of reaching GPU memory three times if that
// way does not work.
TEST_F(GpuDirectTest, StagedWhereThereIsNoWay) {
  DeviceOptions device;
  device.has_dmabuf = false;
  Open(device);
  ExpectStaged(1);
  ExpectStaged(2);
  EXPECT_TRUE(server()->TakesDeviceMemory());
  ExpectStaged(3);
  EXPECT_TRUE(ServerSays(
      "memory of GPUs staged, not to send: peermem: register memory on server: "
      "Bad address; dmabuf: server registers no dmabuf"))
      << server()->Describe();
  EXPECT_FALSE(server()->TakesDeviceMemory());
  ExpectStaged(4);
}

TEST_F(GpuDirectTest, StagedWhereTheLibraryIsOld) {
  NetworkOptions network;
  network.has_reg_dmabuf_mr = false;
  Open({}, {}, network);
  for (int i = 0; i < 3; ++i) ExpectStaged(i);
  EXPECT_TRUE(ServerSays("this libibverbs registers no dmabuf"))
      << server()->Describe();
}

TEST_F(GpuDirectTest, StagedWhereTheGpuExportsNone) {
  Open();
  gpu_.FailExports(absl::FailedPreconditionError("no dmabuf of this GPU"));
  for (int i = 0; i < 3; ++i) ExpectStaged(i);
  EXPECT_FALSE(server()->TakesDeviceMemory());
  EXPECT_TRUE(ServerSays("; dmabuf: no dmabuf of this GPU"))
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
  DeviceOptions device = WithPeerMemory();
  device.binds_gpus = false;
  Open(device);
  for (int i = 0; i < 3; ++i) ExpectStaged(i);
  EXPECT_TRUE(ServerSays(
      "not to send: peermem: no window can be bound to it; dmabuf: "))
      << server()->Describe();
  EXPECT_FALSE(server()->TakesDeviceMemory());
  EXPECT_TRUE(server().events.broken.empty());
}

// Tests a peer-memory region to which no window can be bound. The memory is
// exposed by a dmabuf instead.
TEST_F(GpuDirectTest, ByDmabufWhereNoWindowCanBeBound) {
  DeviceOptions device = WithPeerMemory();
  device.binds_gpus = false;
  device.has_dmabuf = true;
  Open(device);
  ExpectInPlace(1);
  EXPECT_TRUE(ServerSays("GPUDirect by dmabuf to send"))
      << server()->Describe();
}

TEST_F(GpuDirectTest, StagedWhereOtherBytesAreRead) {
  for (const bool has_dmabuf : {false, true}) {
    DeviceOptions device = WithPeerMemory();
    device.has_dmabuf = has_dmabuf;
    device.reads_gpus = false;
    Open(device);
    for (int i = 0; i < 3; ++i) ExpectStaged(i);
    EXPECT_TRUE(ServerSays("not to send: peermem: the wrong bytes are read"))
        << server()->Describe();
    EXPECT_EQ(ServerSays("dmabuf: the wrong bytes are read"), has_dmabuf);
    EXPECT_FALSE(server()->TakesDeviceMemory());
    EXPECT_TRUE(server().events.broken.empty());
  }
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

// Sends one byte less than the limit from which copying costs more.
TEST_F(GpuDirectTest, LittleMemoryIsStaged) {
  Open();
  size_t in_place = 0;
  const std::string text = Text(memory::kMinDeviceBytes - 1);
  EXPECT_EQ(Pass(memory::Payload(gpu_.Put(text)), &in_place), text);
  EXPECT_EQ(in_place, 0u);
}

// Tests a copy from the GPU that fails. The message gets an error, and the
// connection goes on.
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

// Tests short messages with dmabuf. A separate region for a message would cost
// as much as copying some MiB.
TEST_F(GpuDirectTest, ByDmabufLittleIsCopied) {
  least_alone_ = kGpuTestBytes + 1;
  Open();
  ExpectInPlace(1);  // the trial message
  ExpectStaged(2);
  EXPECT_TRUE(server()->TakesDeviceMemory());
  size_t in_place = 0;
  const std::string text = Text(kGpuTestBytes + 1);
  EXPECT_TRUE(Pass(memory::Payload(gpu_.Put(text)), &in_place) == text);
  EXPECT_EQ(in_place, 1u);
  Open(WithPeerMemory());
  ExpectInPlace(1);
  ExpectInPlace(2);
}

TEST_F(GpuDirectTest, AllocationIsRegisteredOnce) {
  Open(WithPeerMemory());
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
  Open(WithPeerMemory());
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
  Open(WithPeerMemory());
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
  EXPECT_EQ(in_place, 0u) << "copying it costs less";
}

// Tests memory without a name, such as memory of another process. A failure
// there says nothing about this process's own memory, which the device may
// reach.
TEST_F(GpuDirectTest, MemoryWithoutANameProvesNothing) {
  Open(WithPeerMemory());
  memory::FakeDeviceAccess foreign;
  foreign.FailShares(absl::FailedPreconditionError("another process's"));
  const std::string text = Text(kGpuTestBytes);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Pass(memory::Payload(foreign.Put(text))), text);
    const memory::Bytes into = foreign.Put(text);
    auto* const data = const_cast<uint8_t*>(into.data);
    EXPECT_EQ(client()->PrepareToRead({data, into.size, &foreign}), nullptr);
  }
  EXPECT_TRUE(ServerSays("memory of GPUs staged, not to send: peermem: "))
      << server()->Describe();
  EXPECT_TRUE(server()->TakesDeviceMemory());
  ExpectInPlace(4);
}

// Tests memory without a name on the same GPU. A failure there says nothing
// about other memory of this GPU.
TEST_F(GpuDirectTest, MemoryWithoutANameOfTheSameGpuProvesNothing) {
  bool is_reached = false;
  DeviceOptions device;
  device.has_dmabuf = false;
  device.peer_memory = [&](const void* address, size_t size) {
    const absl::Span<const uint8_t> range(static_cast<const uint8_t*>(address),
                                          size);
    return is_reached ? gpu_.Backing(range) : nullptr;
  };
  Open(device);
  gpu_.FailShares(absl::FailedPreconditionError("another process's"));
  for (int i = 0; i < 4; ++i) ExpectStaged(i);
  gpu_.FailShares(absl::OkStatus());
  is_reached = true;
  EXPECT_TRUE(server()->TakesDeviceMemory());
  ExpectInPlace(4);
  EXPECT_TRUE(
      ServerSays("other memory of GPU 0: memory of GPUs staged, not to "
                 "send: peermem: register memory on server: "))
      << server()->Describe();
  EXPECT_TRUE(ServerSays("; GPU 0: GPUDirect by peermem to send, "))
      << server()->Describe();
  ends_.reset();
}

TEST_F(GpuDirectTest, RangeThatCannotBeRegisteredIsStagedAndNamed) {
  Open();
  ExpectInPlace(1);
  gpu_.FailExports(absl::FailedPreconditionError("not of this memory"));
  ExpectStaged(2);
  EXPECT_TRUE(
      ServerSays("GPUDirect by dmabuf to send, not of all memory: not of this "
                 "memory"))
      << server()->Describe();
  EXPECT_TRUE(server()->TakesDeviceMemory());
  gpu_.FailExports(absl::OkStatus());
  ExpectInPlace(3);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
