#include "bench/rpc/message/payload.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/rpc/message/cell.h"
#include "bench/rpc/message/message.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"

namespace penstock {
namespace bench {
namespace {

constexpr uint64_t kSeed = 0x0123456789abcdef;

std::string Bytes(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// Returns the bytes in pieces of `piece` bytes, as a transport may deliver
// them.
grpc::ByteBuffer Split(const std::string& bytes, size_t piece) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += piece) {
    slices.emplace_back(bytes.substr(i, piece));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

TEST(WordSumTest, AddsLittleEndianWordsAndPadsTheLast) {
  const uint8_t bytes[] = {1, 0, 0, 0, 0, 0, 0, 1, 2, 1};
  WordSum sum;
  sum.Add(bytes, sizeof(bytes));
  EXPECT_EQ(sum.value(), 0x0100000000000001 + 0x0102);
}

TEST(PayloadTest, FirstWordIsTheSeedAndTheNextIsAnother) {
  const std::string bytes = Bytes(MakePayload(16, 5));
  EXPECT_EQ(bytes.substr(0, 8), std::string("\5\0\0\0\0\0\0\0", 8));
  EXPECT_NE(bytes.substr(0, 8), bytes.substr(8));
}

TEST(PayloadTest, EveryLengthAndSplitPasses) {
  for (size_t bytes = kMinPayload; bytes < 70; ++bytes) {
    const grpc::ByteBuffer message = MakePayload(bytes, kSeed);
    ASSERT_EQ(message.Length(), bytes);
    for (size_t piece = 1; piece <= bytes; ++piece) {
      const auto seed = CheckPayload(Split(Bytes(message), piece));
      ASSERT_TRUE(seed.ok()) << bytes << " in pieces of " << piece;
      EXPECT_EQ(*seed, kSeed);
    }
  }
}

TEST(PayloadTest, LargeMessagePasses) {
  EXPECT_TRUE(CheckPayload(MakePayload((1 << 20) + 3, kSeed)).ok());
}

TEST(PayloadTest, AnyChangedByteIsFound) {
  const std::string good = Bytes(MakePayload(45, kSeed));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 0x10;
    EXPECT_EQ(CheckPayload(Split(bad, 45)).status().code(),
              absl::StatusCode::kDataLoss)
        << "byte " << i;
  }
}

TEST(PayloadTest, AnyMissingTailIsFound) {
  const std::string good = Bytes(MakePayload(45, kSeed));
  // Compares lengths, because a truncated message is a valid, shorter message.
  const grpc::ByteBuffer shorter = Split(good.substr(0, 40), 40);
  EXPECT_FALSE(CheckReply(shorter, 45, ReplySeed(kSeed)).ok());
}

TEST(PayloadTest, MessageWithoutASeedIsRejected) {
  EXPECT_FALSE(CheckPayload(grpc::ByteBuffer()).ok());
  EXPECT_FALSE(CheckPayload(Split("1234567", 7)).ok());
}

TEST(ReplyTest, AnswerPassesAndTheRequestItselfDoesNot) {
  const grpc::ByteBuffer request = MakePayload(100, kSeed);
  const auto reply = Answer(request);
  ASSERT_TRUE(reply.ok());
  EXPECT_TRUE(CheckReply(*reply, 100, kSeed).ok());
  EXPECT_FALSE(CheckReply(request, 100, kSeed).ok());
  EXPECT_FALSE(CheckReply(*reply, 100, kSeed + 1).ok());
}

class FormTest : public ::testing::TestWithParam<MessageForm> {
 protected:
  FormTest() { SetMessageForm(GetParam()); }
  ~FormTest() override { SetMessageForm(MessageForm::kRaw); }
};

TEST_P(FormTest, AnAnswerHasTheRequestsForm) {
  for (size_t bytes : {size_t{8}, size_t{100}, size_t{3} << 20}) {
    const grpc::ByteBuffer request = MakePayload(bytes, kSeed);
    EXPECT_GE(request.Length(), bytes);
    const auto reply = Answer(request);
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_TRUE(CheckReply(*reply, bytes, kSeed).ok());
    EXPECT_FALSE(CheckReply(*reply, bytes + 8, kSeed).ok());
    EXPECT_FALSE(CheckReply(*reply, bytes, kSeed + 1).ok());
  }
}

TEST_P(FormTest, AnyChangedByteIsFound) {
  const std::string good = Bytes(MakePayload(45, kSeed));
  for (size_t i = good.size() - 45; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 0x10;
    EXPECT_FALSE(CheckReply(Split(bad, 1000), 45, ReplySeed(kSeed)).ok()) << i;
  }
}

TEST_P(FormTest, OtherBytesAreNoMessage) {
  EXPECT_FALSE(CheckPayload(Split(std::string(100, '\xff'), 10)).ok());
}

INSTANTIATE_TEST_SUITE_P(All, FormTest, testing::ValuesIn(AllMessageForms()),
                         [](const auto& info) {
                           return std::string(Name(info.param));
                         });

TEST(ProtobufTest, AProtobufMessageIsWhatAStubWouldSend) {
  SetMessageForm(MessageForm::kProtobuf);
  const std::string bytes = Bytes(MakePayload(100, kSeed));
  SetMessageForm(MessageForm::kRaw);
  EXPECT_EQ(bytes, "\x0a\x64" + Bytes(MakePayload(100, kSeed)));
}

TEST(ReplyTest, DamagedRequestGetsNoAnswer) {
  EXPECT_FALSE(Answer(Split(std::string(100, 'x'), 10)).ok());
}

TEST(StreamTallyTest, BothEndsAgree) {
  StreamTally writer, reader;
  for (uint64_t seed = 1; seed < 10; ++seed) {
    writer.AddSeed(seed);
    ASSERT_TRUE(reader.Add(MakePayload(50, seed)).ok());
  }
  EXPECT_EQ(reader.messages(), 9u);
  EXPECT_TRUE(writer.Check(reader.Encode()).ok());
}

TEST(StreamTallyTest, LostDoubledOrOtherMessageIsFound) {
  StreamTally writer, lost, doubled, other;
  writer.AddSeed(1);
  writer.AddSeed(2);
  lost.AddSeed(1);
  for (uint64_t seed : {1, 2, 2}) doubled.AddSeed(seed);
  for (uint64_t seed : {1, 3}) other.AddSeed(seed);
  EXPECT_FALSE(writer.Check(lost.Encode()).ok());
  EXPECT_FALSE(writer.Check(doubled.Encode()).ok());
  EXPECT_FALSE(writer.Check(other.Encode()).ok());
  EXPECT_FALSE(writer.Check(grpc::ByteBuffer()).ok());
}

TEST(AnswerTest, TellsTimesWhereTheSeedAsksForThem) {
  const auto answer = Answer(MakePayload(1000, 7 | kWantsTimes));
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto times = ReadTimes(*answer);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_GT(times->got_ns, 0);
  EXPECT_GE(times->read_ns, times->got_ns);
  EXPECT_FALSE(ReadTimes(MakePayload(1000, 7)).ok());
}

}  // namespace
}  // namespace bench
}  // namespace penstock
