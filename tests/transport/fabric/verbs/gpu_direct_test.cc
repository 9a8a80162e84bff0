// Memory of GPUs: peers read it where it lies, and READs land in it, where the
// device reaches it; else it goes by way of the host, and the connection says
// why.

#include "transport/fabric/verbs/gpu_direct.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/memory/destinations.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr size_t kSize = 300 * 1000;

std::string Text(size_t size, int seed = 0) {
  std::string text(size, '.');
  for (size_t i = 0; i < size; ++i) {
    text[i] = static_cast<char>((i * 31 + i / 251 + seed * 7) % 253);
  }
  return text;
}

memory::Payload Join(const std::vector<memory::Bytes>& pieces) {
  memory::Payload payload;
  for (const memory::Bytes& piece : pieces) payload.Append(piece);
  return payload;
}

class GpuDirectTest : public testing::Test {
 protected:
  void Open(DeviceOptions device = {}, Options options = {},
            NetworkOptions network = {}) {
    ends_.reset();
    ends_ = std::make_unique<Ends>(std::move(device), options, network);
    ASSERT_TRUE(ends_->Connect().ok());
  }
  End& server() { return ends_->server; }
  End& client() { return ends_->client; }
  bool ServerSays(const std::string& text) {
    return absl::StrContains(server()->Describe(), text);
  }
  DeviceOptions WithPeerMemory() {
    DeviceOptions device;
    device.has_dmabuf = false;
    device.peer_memory = [this](const void* address, size_t size) {
      return gpu_.Backing({static_cast<const uint8_t*>(address), size});
    };
    return device;
  }

  // What the client reads of a message of the server's; `in_place`: how many
  // pieces of what is kept are GPUs'.
  std::string Pass(const memory::Payload& payload, size_t* in_place = nullptr) {
    absl::StatusOr<Exposure> exposure = server()->Expose(payload, 100);
    EXPECT_TRUE(exposure.ok()) << exposure.status();
    if (!exposure.ok()) return "";
    if (in_place != nullptr) {
      *in_place = 0;
      for (const memory::Bytes& piece : exposure->stable.pieces()) {
        if (piece.device != nullptr) ++*in_place;
      }
    }
    const std::string got = ends_->ReadAll(&client(), exposure->region);
    server()->Withdraw(exposure->region);
    ends_->Exchange();
    return got;
  }
  void ExpectInPlace(int seed) {
    const std::string text = Text(kSize, seed);
    size_t in_place = 0;
    EXPECT_EQ(Pass(memory::Payload(gpu_.Put(text)), &in_place), text);
    EXPECT_EQ(in_place, 1u) << server()->Describe();
  }
  void ExpectStaged(int seed) {
    const std::string text = Text(kSize, seed);
    size_t in_place = 0;
    EXPECT_EQ(Pass(memory::Payload(gpu_.Put(text)), &in_place), text);
    EXPECT_EQ(in_place, 0u) << server()->Describe();
  }

  std::shared_ptr<const void> Prepare(const memory::Bytes& into) {
    return client()->PrepareToRead(
        {const_cast<uint8_t*>(into.data), into.size, &gpu_});
  }
  // Reads as much into `into`, which is prepared.
  void ExpectLands(const memory::Bytes& into, int seed) {
    const std::string text = Text(into.size, seed);
    const Exposure exposure =
        server()->Expose(Ends::PayloadOf(text), 1).value();
    const size_t chunk = client()->capabilities().read_chunk_bytes;
    for (size_t at = 0; at < into.size; at += chunk) {
      const size_t size = std::min(chunk, into.size - at);
      client()->Read(exposure.region[0], at,
                     {const_cast<uint8_t*>(into.data) + at, size}, ++cookie_);
      ends_->Exchange();
      EXPECT_TRUE(client().events.Succeeded(cookie_));
    }
    EXPECT_TRUE(gpu_.Get(into.span()) == text);
    server()->Withdraw(exposure.region);
    ends_->Exchange();
  }

  memory::FakeDeviceAccess gpu_;
  std::unique_ptr<Ends> ends_;
  uint64_t cookie_ = 0;
};

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
  const memory::Bytes into = gpu_.Put(Text(kSize));
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
  const memory::Bytes into = gpu_.Put(Text(kSize));
  auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  ExpectLands(into, 2);
  EXPECT_TRUE(absl::StrContains(client()->Describe(),
                                "GPUDirect by dmabuf for destinations"))
      << client()->Describe();
}

TEST_F(GpuDirectTest, OfSeveralPiecesEachGoesItsWay) {
  Open();
  const std::string texts[] = {Text(100, 1), Text(kSize, 2), Text(1000, 3),
                               Text(64 * 1024, 4), Text(kSize, 5)};
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
      server()->Expose(memory::Payload(gpu_.Put(Text(kSize))), 1);
  EXPECT_EQ(exposure.status().message(), "the GPU is lost");
  gpu_.FailCopies(absl::OkStatus());
  ExpectStaged(1);
}

TEST_F(GpuDirectTest, AllocationIsRegisteredOnce) {
  Open();
  ExpectInPlace(1);
  const std::string text = Text(8 * kSize);
  const memory::Bytes all = gpu_.Put(text);
  const int before = ends_->api->counts().mrs;
  for (int i = 0; i < 8; ++i) {
    size_t in_place = 0;
    const memory::Payload part(all.Part(i * kSize, kSize));
    EXPECT_TRUE(Pass(part, &in_place) == text.substr(i * kSize, kSize));
    EXPECT_EQ(in_place, 1u);
  }
  EXPECT_EQ(ends_->api->counts().mrs, before + 1);
}

TEST_F(GpuDirectTest, MemoryAllocatedAnewIsNotMistaken) {
  Open();
  const uint8_t* address = nullptr;
  int same = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string text = Text(kSize, i);
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

// Destinations.

TEST_F(GpuDirectTest, ReadsLandInTheGpuAndAreSeenThere) {
  gpu_.NeedFlushes();
  Open();
  const memory::Bytes into = gpu_.Put(Text(kSize));
  const auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  EXPECT_TRUE(gpu_.Get(into.span()) == Text(kSize)) << "the trial left a trace";
  const int copies = gpu_.copies();
  ExpectLands(into, 1);
  ExpectLands(into, 2);
  EXPECT_EQ(gpu_.copies(), copies);
  EXPECT_TRUE(absl::StrContains(client()->Describe(), "GPUDirect by dmabuf"))
      << client()->Describe();
}

TEST_F(GpuDirectTest, ReadsLandByPeerMemory) {
  Open(WithPeerMemory());
  const memory::Bytes into = gpu_.Put(Text(kSize));
  const auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  ExpectLands(into, 1);
}

TEST_F(GpuDirectTest, APieceOfOneGpuLandsInAnother) {
  Open();
  const memory::Bytes into = gpu_.Put(Text(kSize, 1));
  const auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  const Exposure exposure =
      server()->Expose(memory::Payload(gpu_.Put(Text(kSize, 2))), 1).value();
  client()->Read(exposure.region[0], 0,
                 {const_cast<uint8_t*>(into.data), kSize}, 1);
  ends_->Exchange();
  EXPECT_TRUE(client().events.Succeeded(1));
  EXPECT_TRUE(gpu_.Get(into.span()) == Text(kSize, 2));
}

TEST_F(GpuDirectTest, NothingLandsWhereItWouldNotCome) {
  DeviceOptions device;
  device.writes_gpus = false;
  Open(device);
  const memory::Bytes into = gpu_.Put(Text(kSize));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Prepare(into), nullptr);
  EXPECT_TRUE(gpu_.Get(into.span()) == Text(kSize));
  EXPECT_TRUE(absl::StrContains(
      client()->Describe(),
      "not for destinations: what is read into it does not come there"))
      << client()->Describe();
  ExpectInPlace(1);
}

TEST_F(GpuDirectTest, NothingLandsWhereItWouldNotBeSeen) {
  Open();
  gpu_.FailFlushes(absl::FailedPreconditionError("no flush"));
  const memory::Bytes into = gpu_.Put(Text(kSize));
  EXPECT_EQ(Prepare(into), nullptr);
  gpu_.FailFlushes(absl::OkStatus());
  EXPECT_NE(Prepare(into), nullptr);
}

TEST_F(GpuDirectTest, FlushThatFailsFailsTheReadAlone) {
  Open();
  const memory::Bytes into = gpu_.Put(Text(kSize));
  const auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  const Exposure exposure =
      server()->Expose(Ends::PayloadOf(Text(kSize)), 1).value();
  gpu_.FailFlushes(absl::InternalError("the GPU is lost"));
  client()->Read(exposure.region[0], 0,
                 {const_cast<uint8_t*>(into.data), kSize}, 100);
  ends_->Exchange();
  EXPECT_TRUE(client().events.Failed(100));
  EXPECT_EQ(client().events.reads[100].message(), "the GPU is lost");
  EXPECT_TRUE(client().events.broken.empty());
  gpu_.FailFlushes(absl::OkStatus());
  ExpectLands(into, 3);
}

TEST_F(GpuDirectTest, LittleMemoryIsNoDestination) {
  Open();
  EXPECT_EQ(Prepare(gpu_.Put(Text(memory::kMinDeviceBytes - 1))), nullptr);
  EXPECT_NE(Prepare(gpu_.Put(Text(memory::kMinDeviceBytes))), nullptr);
}

// A READ that is under way keeps its registration.
TEST_F(GpuDirectTest, ReadOutlivesWhatWasPrepared) {
  Open();
  gpu_.FailShares(absl::FailedPreconditionError("of a pool"));  // not kept
  const memory::Bytes into = gpu_.Put(Text(kSize));
  auto prepared = Prepare(into);
  ASSERT_NE(prepared, nullptr);
  const Exposure exposure =
      server()->Expose(Ends::PayloadOf(Text(kSize, 1)), 1).value();
  ends_->api->Hold();
  client()->Read(exposure.region[0], 0,
                 {const_cast<uint8_t*>(into.data), kSize}, 1);
  prepared.reset();
  ends_->api->Release();
  ends_->Exchange();
  EXPECT_TRUE(client().events.Succeeded(1));
  EXPECT_TRUE(gpu_.Get(into.span()) == Text(kSize, 1));
  EXPECT_TRUE(ends_->api->misuse().empty());
}

// Memory of a GPU's that nobody has prepared cannot be read into.
TEST_F(GpuDirectTest, ReadIntoMemoryThatIsNotPreparedFails) {
  Open();
  const memory::Bytes into = gpu_.Put(Text(kSize));
  const Exposure exposure =
      server()->Expose(Ends::PayloadOf(Text(kSize, 1)), 1).value();
  client()->Read(exposure.region[0], 0,
                 {const_cast<uint8_t*>(into.data), kSize}, 1);
  ends_->Exchange();
  EXPECT_TRUE(client().events.Failed(1));
  EXPECT_TRUE(client().events.broken.empty());
}

TEST_F(GpuDirectTest, LostConnectionEndsReadsBeforeTheirMemory) {
  Open();
  const memory::Bytes into = gpu_.Put(Text(kSize));
  auto prepared = Prepare(into);
  const Exposure exposure =
      server()->Expose(memory::Payload(gpu_.Put(Text(kSize, 1))), 1).value();
  ends_->api->Hold();
  client()->Read(exposure.region[0], 0,
                 {const_cast<uint8_t*>(into.data), kSize}, 1);
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
