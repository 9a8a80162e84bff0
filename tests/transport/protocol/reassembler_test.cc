#include "transport/protocol/reassembler.h"

#include <malloc.h>

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace protocol {
namespace {

using wire::FrameType;

class ReassemblerTest : public ::testing::Test {
 protected:
  absl::Status Accept(const std::string& payload, bool more, bool* whole,
                      FrameType type = FrameType::kHeaders,
                      uint32_t stream = 1) {
    wire::FrameHeader header;
    header.type = type;
    header.stream = stream;
    header.flags = more ? wire::kMoreFragments : 0;
    return reassembler_.Accept(
        header,
        {reinterpret_cast<const uint8_t*>(payload.data()), payload.size()},
        whole);
  }
  // Returns true if the payload completed a frame.
  bool Take(const std::string& payload, bool more) {
    bool whole = false;
    const absl::Status status = Accept(payload, more, &whole);
    EXPECT_TRUE(status.ok()) << status;
    return whole;
  }

  std::string Joined() const {
    const absl::Span<const uint8_t> joined = reassembler_.joined();
    return std::string(joined.begin(), joined.end());
  }

  // Returns the capacity of the memory that joins a short payload after a
  // payload of `size` bytes.
  size_t KeptAfter(size_t size) {
    Take(std::string(size, 'x'), true);
    Take("", false);
    Take(std::string(100, 'y'), true);
    EXPECT_TRUE(Take("", false));
    return malloc_usable_size(
        const_cast<uint8_t*>(reassembler_.joined().data()));
  }

  Reassembler reassembler_;
};

TEST_F(ReassemblerTest, FrameInOnePieceIsNotCopied) {
  EXPECT_TRUE(Take("whole", false));
  EXPECT_FALSE(reassembler_.was_fragmented());
}

TEST_F(ReassemblerTest, FragmentsAreJoined) {
  EXPECT_FALSE(Take("one ", true));
  EXPECT_FALSE(Take("", true));
  EXPECT_FALSE(Take("two ", true));
  EXPECT_TRUE(Take("three", false));
  EXPECT_TRUE(reassembler_.was_fragmented());
  EXPECT_EQ(Joined(), "one two three");
}

TEST_F(ReassemblerTest, NextFrameStartsAnew) {
  Take("a", true);
  Take("b", false);
  EXPECT_TRUE(Take("whole", false));
  EXPECT_FALSE(reassembler_.was_fragmented());
  Take("c", true);
  EXPECT_TRUE(Take("d", false));
  EXPECT_EQ(Joined(), "cd");
}

TEST_F(ReassemblerTest, UntakenFrameIsForgotten) {
  Take("a", true);
  Take("b", false);
  Take("c", true);
  Take("d", false);
  EXPECT_EQ(Joined(), "cd");
}

TEST_F(ReassemblerTest, AnotherTypeInterrupts) {
  Take("a", true);
  bool whole = false;
  EXPECT_TRUE(absl::IsInvalidArgument(
      Accept("b", false, &whole, FrameType::kTrailers)));
}

TEST_F(ReassemblerTest, AnotherStreamInterrupts) {
  Take("a", true);
  bool whole = false;
  EXPECT_TRUE(absl::IsInvalidArgument(
      Accept("b", true, &whole, FrameType::kHeaders, 2)));
}

TEST_F(ReassemblerTest, OfTooMuchMetadataNoMoreIsKeptThanShowsIt) {
  Reassembler reassembler(/*max_metadata_bytes=*/5);
  const uint8_t bytes[] = {1, 2, 3, 4};
  for (FrameType type : {FrameType::kTrailers, FrameType::kMessage}) {
    wire::FrameHeader header;
    header.type = type;
    bool whole = false;
    for (uint8_t flags : {wire::kMoreFragments, wire::kMoreFragments,
                          static_cast<uint8_t>(0)}) {
      header.flags = flags;
      ASSERT_TRUE(reassembler.Accept(header, bytes, &whole).ok());
    }
    EXPECT_TRUE(whole);
    EXPECT_EQ(reassembler.joined().size(),
              type == FrameType::kMessage ? 12u : 6u);
  }
}

TEST_F(ReassemblerTest, MemoryIsKeptForThoseThatCome) {
  EXPECT_GE(KeptAfter(100000), 100000u);
  EXPECT_LT(KeptAfter(8 << 20), 1u << 20);  // but less than this
}

TEST_F(ReassemblerTest, FragmentsHaveALimitTogether) {
  // Reaches the limit of docs/protocol.md, 16 MiB, with two halves.
  const std::string half(8 << 20, 'x');
  bool whole = false;
  EXPECT_FALSE(Take(half, true));
  EXPECT_FALSE(Take(half, true));  // exactly at the limit
  EXPECT_FALSE(Take("", true));
  EXPECT_TRUE(absl::IsInvalidArgument(Accept("x", false, &whole)));
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
