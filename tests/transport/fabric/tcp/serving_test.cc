// Tests an endpoint that serves its peer's reads.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/tcp/tcp_test_util.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

// Returns a text in which no two chunks are equal: its period is slightly
// longer than a chunk.
std::string Pattern(size_t size) {
  std::string period(256 * kKiB + 13, '\0');
  uint32_t value = 1;
  for (char& byte : period) byte = static_cast<char>((value *= 69069) >> 24);
  std::string bytes;
  bytes.reserve(size + period.size());
  while (bytes.size() < size) bytes += period;
  bytes.resize(size);
  return bytes;
}

// The server under test and an endpoint that reads from it.
class TcpServing : public TcpEndpointTest {
 protected:
  TcpServing() : reader_(&reader_pipe_) { reader_.Start(&at_reader_); }

  // Stops the stream: the server has more to write than the peer reads, so the
  // answers wait.
  void StopTheStream() { ASSERT_NO_FATAL_FAILURE(BeginWrite()); }
  // Reads [0, count * size) in reads of `size`, all in progress at once.
  void ReadAtOnce(const RemotePart& part, size_t count, size_t size) {
    into_.assign(count * size, '.');
    const absl::Span<uint8_t> into(reinterpret_cast<uint8_t*>(&into_[0]),
                                   into_.size());
    for (size_t i = 0; i < count; ++i) {
      reader_.Read(part, i * size, into.subspan(i * size, size), i);
    }
    while (reader_pipe_.writing()) {
      const std::string requests = reader_pipe_.Take();
      reader_pipe_.Finish();
      Receive(requests);
      reader_.OnWritten();
    }
  }
  // Brings all the answers to the reader.
  void TakeAnswers() {
    while (pipe_.writing()) {
      const std::string answers = TakeWrite();
      reader_.OnBytes(AsSpan(answers));
    }
  }
  size_t CountGood() {
    size_t good = 0;
    for (const std::string& line : at_reader_.Take()) {
      if (line.size() > 3 && line.substr(line.size() - 3) == " OK") ++good;
    }
    return good;
  }
  void ExpectServed(size_t count, size_t size) {
    const std::string bytes = Pattern(count * size);
    const RemotePart part = Expose(bytes);
    ASSERT_NO_FATAL_FAILURE(StopTheStream());
    ReadAtOnce(part, count, size);
    EXPECT_TRUE(events_.cause().ok()) << events_.cause();
    TakeAnswers();
    EXPECT_EQ(CountGood(), count);
    EXPECT_TRUE(into_ == bytes);
  }

  Pipe reader_pipe_;
  Recorder at_reader_;
  std::string into_;
  Endpoint reader_;
};

TEST_F(TcpServing, AnswerIsTheBytesThatWereAskedFor) {
  const RemotePart part = Expose("abcdefghij");
  Receive(MakeRead(0x1122334455667788, {part.key, 3, 4}));
  EXPECT_EQ(ToHex(TakeWrites()),
            ToHex(FromHex("04000000 04000000 8877665544332211 64656667")));
  EXPECT_EQ(events_.Take(), Lines{});
}

// Tests that the bytes reach the socket from the application's slices.
TEST_F(TcpServing, ServedBytesAreNotCopied) {
  memory::Block block = memory::AllocateBlock(kMiB).value();
  const memory::Payload payload(block.AsBytes());
  const RemotePart part = Expose(payload);
  Receive(MakeRead(1, {part.key, 1000, 256 * kKiB}));
  ASSERT_TRUE(pipe_.writing());
  ASSERT_EQ(pipe_.left().size(), 2u);
  EXPECT_EQ(pipe_.left()[0].size, kUnitHeaderBytes);
  EXPECT_EQ(pipe_.left()[1].data, block.data.get() + 1000);
  EXPECT_EQ(pipe_.left()[1].size, 256 * kKiB);
}

TEST_F(TcpServing, ReadAcrossPiecesTakesAllOfThem) {
  memory::Payload payload;
  for (const char* piece : {"ab", "c", "defg", "hij"}) {
    payload.Append(
        memory::Bytes{AsSpan(piece).data(), AsSpan(piece).size(), nullptr});
  }
  const RemotePart part = Expose(payload);
  Receive(MakeRead(1, {part.key, 1, 8}));
  Receive(MakeRead(2, {part.key, 9, 1}));
  const std::vector<Unit> units = SplitUnits(TakeWrites());
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(units[0].body, "bcdefghi");
  EXPECT_EQ(units[1].body, "j");
}

TEST_F(TcpServing, DeviceMemoryIsCopiedChunkByChunk) {
  memory::FakeDeviceAccess device;
  const std::string bytes = Pattern(kMiB);
  const RemotePart part = Expose(memory::Payload(device.Put(bytes)));
  EXPECT_EQ(device.copies(), 0);
  ReadAtOnce(part, 2, 256 * kKiB);
  EXPECT_EQ(device.copies(), 1) << "the second one waits for the stream";
  TakeAnswers();
  EXPECT_EQ(device.copies(), 2);
  EXPECT_EQ(CountGood(), 2u);
  EXPECT_TRUE(into_ == bytes.substr(0, 512 * kKiB));
}

TEST_F(TcpServing, DeviceMemoryThatCannotBeReadFailsTheRead) {
  memory::FakeDeviceAccess device;
  const RemotePart part = Expose(memory::Payload(device.Put("abcdefghij")));
  device.FailCopies(absl::InternalError("illegal address"));
  ReadAtOnce(part, 1, 10);
  TakeAnswers();
  EXPECT_EQ(at_reader_.Take(), Lines{"read 0 failed"});
  EXPECT_TRUE(events_.cause().ok()) << events_.cause();
}

TEST_F(TcpServing, PacketsAndAnswersAlternateInOneStream) {
  const RemotePart part = Expose("abcdefghij");
  ASSERT_NO_FATAL_FAILURE(StopTheStream());
  ASSERT_TRUE(Send("one"));
  Receive(MakeRead(1, {part.key, 0, 5}));
  ASSERT_TRUE(Send("two"));
  Receive(MakeRead(2, {part.key, 5, 5}));
  ASSERT_TRUE(Send("three"));
  std::string packets;
  std::string answers;
  for (const Unit& unit : SplitUnits(TakeWrites())) {
    (unit.header.type == UnitType::kPacket ? packets : answers) += unit.body;
  }
  EXPECT_EQ(packets, "firstonetwothree");
  EXPECT_EQ(answers, "abcdefghij");
}

// Reads more than 64 MiB at once. A session reads many messages at once, each
// in several chunks.
TEST_F(TcpServing, HonestPeerMayReadMoreThan64MiBAtOnce) {
  ExpectServed(256, 256 * kKiB);
}

TEST_F(TcpServing, HonestPeerMayReadMuchMoreThan64MiBAtOnce) {
  ExpectServed(400, 256 * kKiB);
}

// Starts as many reads as a session may have in progress: 64 MiB of the
// smallest messages that are announced.
TEST_F(TcpServing, HonestPeerMayHaveMoreThanAThousandReads) {
  ExpectServed(1400, 49 * kKiB);
}

TEST_F(TcpServing, LargestReadIsServed) { ExpectServed(3, kMiB); }

// Tests that a packet waits for only a limited part of the answers.
TEST_F(TcpServing, PacketOvertakesMostOfTheAnswersThatWait) {
  const RemotePart part = Expose(Pattern(16 * kMiB));
  ASSERT_NO_FATAL_FAILURE(StopTheStream());
  ReadAtOnce(part, 64, 256 * kKiB);
  ASSERT_TRUE(Send("urgent"));
  size_t before = 0;
  for (const Unit& unit : SplitUnits(TakeWrites())) {
    if (unit.body == "urgent") break;
    before += unit.body.size();
  }
  EXPECT_LE(before, 2 * kMiB);
}

// Tests that answers which the peer has not read yet leave room for packets in
// the queue.
TEST_F(TcpServing, AnswersThatWaitTakeNoCreditFromPackets) {
  const RemotePart part = Expose(Pattern(16 * kMiB));
  ASSERT_NO_FATAL_FAILURE(StopTheStream());
  ReadAtOnce(part, 64, 256 * kKiB);
  EXPECT_TRUE(Send("a packet"));
}

TEST_F(TcpServing, WithdrawWhileAnswersWaitFailsTheRestOfThem) {
  const std::string bytes = Pattern(16 * kMiB);
  const RemotePart part = Expose(bytes);
  ASSERT_NO_FATAL_FAILURE(StopTheStream());
  ReadAtOnce(part, 64, 256 * kKiB);
  endpoint_->Withdraw({part});
  TakeAnswers();
  const Lines lines = at_reader_.Take();
  ASSERT_EQ(lines.size(), 65u);  // 64 reads and the packet
  EXPECT_TRUE(at_reader_.cause().ok());
  for (size_t i = 0; i < 64; ++i) {
    if (lines[i + 1] != absl::StrCat("read ", i, " OK")) continue;
    EXPECT_TRUE(into_.substr(i * 256 * kKiB, 256 * kKiB) ==
                bytes.substr(i * 256 * kKiB, 256 * kKiB));
  }
}

// Tests a peer that reads no answers. The memory that this end keeps for it
// must be limited.
TEST_F(TcpServing, PeerThatOnlyAsksIsCutOff) {
  for (uint64_t key : {1, 2}) {  // a region that exists, and one that does not
    for (uint32_t size : {1, 1024 * 1024}) {
      NewEndpoint();
      ASSERT_EQ(Expose(std::string(kMiB, 'x')).key, 1u);
      ASSERT_NO_FATAL_FAILURE(StopTheStream());
      const std::string request = MakeRead(1, {key, 0, size});
      size_t requests = 0;
      while (requests < kMiB && events_.cause().ok()) {
        Receive(request);
        ++requests;
      }
      EXPECT_LT(requests, kMiB) << "key " << key << ", size " << size;
      EXPECT_EQ(events_.Take(), Lines{"broken"});
    }
  }
}

TEST_F(TcpServing, EndWithAnswersWaitingLetsGoOfThePayload) {
  std::weak_ptr<uint8_t> watched;
  RemotePart part;
  {
    const memory::Block block = memory::AllocateBlock(kMiB).value();
    const memory::Payload payload(block.AsBytes());
    part = Expose(payload);
    watched = block.data;
  }
  ASSERT_NO_FATAL_FAILURE(StopTheStream());
  for (uint64_t i = 0; i < 10; ++i) {
    Receive(MakeRead(i, {part.key, 0, 256 * kKiB}));
  }
  EXPECT_FALSE(watched.expired());
  endpoint_->Break(absl::UnavailableError("gone"));
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
