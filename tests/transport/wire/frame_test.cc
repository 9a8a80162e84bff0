#include "transport/wire/frame.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/transport/wire/wire_test_util.h"

namespace penstock {
namespace wire {
namespace {

FrameHeader Header(FrameType type, uint64_t sequence, size_t length = 0) {
  FrameHeader header;
  header.length = static_cast<uint32_t>(length);
  header.type = type;
  header.sequence = sequence;
  return header;
}

std::string Encode(const FrameHeader& header, absl::string_view payload = "") {
  std::string out;
  AppendFrame(header, payload, &out);
  return out;
}

absl::StatusOr<Frame> Parse(absl::string_view bytes) {
  absl::Span<const uint8_t> message = AsSpan(bytes);
  return TakeFrame(&message);
}

void ExpectMalformed(absl::string_view bytes, absl::string_view why) {
  const absl::Status status = Parse(bytes).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), why)) << status;
}

bool Equal(const FrameHeader& a, const FrameHeader& b) {
  return a.length == b.length && a.type == b.type && a.flags == b.flags &&
         a.stream == b.stream && a.aux == b.aux && a.sequence == b.sequence &&
         a.ack == b.ack;
}

struct Golden {
  FrameType type;
  absl::string_view type_hex;
};

// All types of frames. Never change a number: another number means another
// version of the protocol.
const Golden kGolden[] = {
    {FrameType::kHello, "01"},      {FrameType::kPathReady, "02"},
    {FrameType::kPathLost, "03"},   {FrameType::kAck, "04"},
    {FrameType::kPathWanted, "05"}, {FrameType::kPathOffered, "06"},
    {FrameType::kHeaders, "10"},    {FrameType::kMessage, "11"},
    {FrameType::kAnnounce, "12"},   {FrameType::kRelease, "13"},
    {FrameType::kHalfClose, "14"},  {FrameType::kTrailers, "15"},
    {FrameType::kReset, "16"},      {FrameType::kCredit, "17"},
    {FrameType::kGoaway, "18"},     {FrameType::kPing, "19"},
    {FrameType::kPong, "1a"},       {FrameType::kEntry, "1b"},
};

TEST(Frame, GoldenBytesOfEveryType) {
  for (const Golden& golden : kGolden) {
    const bool sequenced = golden.type >= FrameType::kHeaders;
    EXPECT_EQ(IsSequenced(golden.type), sequenced);
    FrameHeader header = Header(golden.type, sequenced ? 0x0102030405060708 : 0,
                                /*length=*/3);
    header.flags = kMoreFragments;
    header.stream = 0x11121314;
    header.aux = 0x21222324;
    header.ack = 0x3132333435363738;
    const std::string expected =
        "03000000" + std::string(golden.type_hex) + "01" + "0000" + "14131211" +
        "24232221" + (sequenced ? "0807060504030201" : "0000000000000000") +
        "3837363534333231" + "616263";
    EXPECT_EQ(ToHex(Encode(header, "abc")), expected);
    const std::string bytes = FromHex(expected);
    absl::StatusOr<Frame> frame = Parse(bytes);
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_TRUE(Equal(frame->header, header));
    EXPECT_EQ(frame->payload, AsSpan("abc"));
  }
}

TEST(Frame, WhatIsNotSetIsZero) {
  FrameHeader header;
  header.type = FrameType::kPathReady;
  EXPECT_EQ(ToHex(Encode(header, "")),
            "0000000002" + std::string(2 * (kFrameHeaderBytes - 5), '0'));
}

TEST(Frame, SizesAreThoseOfVersionOne) {
  EXPECT_EQ(kOldestVersion, 1);
  EXPECT_EQ(kFrameHeaderBytes, 32u);
  EXPECT_EQ(kMaxFrameBytes, 16384u);
  EXPECT_EQ(kMoreFragments, 1);
  EXPECT_EQ(kCompressed, 2);
}

TEST(Frame, OnlyKnownTypesAreTaken) {
  for (int type = 0; type < 256; ++type) {
    bool known = false;
    for (const Golden& golden : kGolden) {
      known = known || static_cast<int>(golden.type) == type;
    }
    std::string bytes = Encode(Header(FrameType::kPing, 1));
    bytes[4] = static_cast<char>(type);
    if (!known) {
      ExpectMalformed(bytes, "unknown type " + std::to_string(type));
    } else {
      EXPECT_EQ(Parse(bytes).ok(), type >= 16) << type;
    }
  }
}

TEST(Frame, OnlyKnownFlagsAreTaken) {
  for (int flags = 0; flags < 256; ++flags) {
    std::string bytes = Encode(Header(FrameType::kMessage, 1));
    bytes[5] = static_cast<char>(flags);
    EXPECT_EQ(Parse(bytes).ok(), flags < 8) << flags;
  }
}

TEST(Frame, ReservedBytesAreZero) {
  for (int at : {6, 7}) {
    std::string bytes = Encode(Header(FrameType::kMessage, 1));
    bytes[at] = 1;
    EXPECT_FALSE(Parse(bytes).ok());
  }
}

TEST(Frame, SequenceNumberFitsTheType) {
  ExpectMalformed(Encode(Header(FrameType::kMessage, 0)), "sequence number");
  ExpectMalformed(Encode(Header(FrameType::kAck, 1)), "sequence number");
}

TEST(Frame, CutAnywhereIsRejected) {
  const std::string bytes = Encode(Header(FrameType::kMessage, 1, 5), "hello");
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    ExpectMalformed(cut, size < kFrameHeaderBytes ? "cut short" : "length");
  }
  EXPECT_TRUE(Parse(bytes).ok());
}

TEST(Frame, LongestPayloadIsTakenAndNoLonger) {
  const std::string payload(kMaxFramePayload + 1, 'x');
  const absl::string_view most =
      absl::string_view(payload).substr(0, kMaxFramePayload);
  absl::StatusOr<Frame> frame;
  const std::string bytes =
      Encode(Header(FrameType::kMessage, 1, most.size()), most);
  EXPECT_EQ(bytes.size(), kMaxFrameBytes);
  EXPECT_TRUE(Parse(bytes).ok());
  ExpectMalformed(
      Encode(Header(FrameType::kMessage, 1, payload.size()), payload),
      "length 16353");
  std::string huge = Encode(Header(FrameType::kMessage, 1));
  huge[0] = huge[1] = huge[2] = huge[3] = '\xff';
  ExpectMalformed(huge, "length 4294967295");
}

TEST(Frame, FramesOfOneMessageComeOffInOrder) {
  std::string bytes = Encode(Header(FrameType::kMessage, 1, 3), "one");
  bytes += Encode(Header(FrameType::kHalfClose, 2));
  bytes += Encode(Header(FrameType::kMessage, 3, 5), "three");
  absl::Span<const uint8_t> message = AsSpan(bytes);
  std::vector<uint64_t> sequences;
  while (!message.empty()) {
    absl::StatusOr<Frame> frame = TakeFrame(&message);
    ASSERT_TRUE(frame.ok()) << frame.status();
    sequences.push_back(frame->header.sequence);
  }
  EXPECT_EQ(sequences, (std::vector<uint64_t>{1, 2, 3}));
}

TEST(Frame, RejectedFrameTakesNothingOff) {
  std::string bytes = Encode(Header(FrameType::kMessage, 1, 3), "one");
  bytes[4] = 99;
  absl::Span<const uint8_t> message = AsSpan(bytes);
  EXPECT_FALSE(TakeFrame(&message).ok());
  EXPECT_EQ(message.size(), bytes.size());
}

TEST(Frame, EncodeThenParseIsIdentity) {
  Mutator random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string payload = random.Random(random.Below(300));
    const FrameType type = kGolden[random.Below(17)].type;
    FrameHeader header =
        Header(type, IsSequenced(type) ? 1 + random.Below(~uint64_t{0}) : 0,
               payload.size());
    header.flags = static_cast<uint8_t>(random.Below(8));
    header.stream = static_cast<uint32_t>(random.Below(uint64_t{1} << 32));
    header.aux = static_cast<uint32_t>(random.Below(uint64_t{1} << 32));
    header.ack = random.Below(~uint64_t{0});
    const std::string bytes = Encode(header, payload);
    absl::StatusOr<Frame> frame = Parse(bytes);
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_TRUE(Equal(frame->header, header));
    EXPECT_EQ(frame->payload, AsSpan(payload));
  }
}

// Damages frames. For any bytes, parsing must end, and must stay within the
// bytes. An accepted frame must equal its encoding.
TEST(Frame, DamagedFramesAreRejectedOrMeanWhatTheySay) {
  Mutator random(2);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes =
        Encode(Header(FrameType::kMessage, 7, 40), std::string(40, 'x')) +
        Encode(Header(FrameType::kAck, 0));
    // Gives the bytes their own memory, so that a sanitizer notices a read
    // beyond them.
    const std::string damaged = random.Mutate(bytes);
    const std::vector<uint8_t> exact(damaged.begin(), damaged.end());
    absl::Span<const uint8_t> message = exact;
    while (!message.empty()) {
      const absl::Span<const uint8_t> before = message;
      absl::StatusOr<Frame> frame = TakeFrame(&message);
      if (!frame.ok()) break;
      const size_t taken = before.size() - message.size();
      const std::string again =
          Encode(frame->header, absl::string_view(reinterpret_cast<const char*>(
                                                      frame->payload.data()),
                                                  frame->payload.size()));
      EXPECT_EQ(AsSpan(again), before.first(taken));
    }
  }
}

}  // namespace
}  // namespace wire
}  // namespace penstock
