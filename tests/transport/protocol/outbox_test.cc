#include "transport/protocol/outbox.h"

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace protocol {
namespace {

using wire::FrameType;
using wire::kMaxFrameBytes;
using wire::kMaxFramePayload;

wire::FrameHeader Header(FrameType type, uint32_t stream = 1) {
  wire::FrameHeader header;
  header.type = type;
  header.stream = stream;
  header.aux = 5;
  header.flags = wire::kCompressed;
  return header;
}

std::vector<wire::Frame> FramesOf(const Batch& batch) {
  std::vector<wire::Frame> frames;
  absl::Span<const uint8_t> rest(
      reinterpret_cast<const uint8_t*>(batch.bytes.data()), batch.bytes.size());
  while (!rest.empty()) {
    absl::StatusOr<wire::Frame> frame = wire::TakeFrame(&rest);
    EXPECT_TRUE(frame.ok()) << frame.status();
    if (!frame.ok()) break;
    frames.push_back(*frame);
  }
  return frames;
}

TEST(Outbox, IsEmptyAtFirst) {
  base::BufferPool buffers;
  EXPECT_TRUE(Outbox(kMaxFrameBytes, &buffers).empty());
}

TEST(Outbox, MemoryIsUsedAgain) {
  base::BufferPool buffers;
  Outbox outbox(kMaxFrameBytes, &buffers);
  outbox.Add(Header(FrameType::kMessage), "hello", 0);
  Batch batch = outbox.Pop();
  const char* const memory = batch.bytes.data();
  buffers.Give(std::move(batch.bytes));
  outbox.Add(Header(FrameType::kMessage), "again", 0);
  EXPECT_EQ(outbox.front().bytes.data(), memory);
  EXPECT_EQ(FramesOf(outbox.front()).size(), 1u);
}

TEST(Outbox, FrameLeavesAsItWasDescribed) {
  base::BufferPool buffers;
  Outbox outbox(kMaxFrameBytes, &buffers);
  EXPECT_EQ(outbox.Add(Header(FrameType::kMessage), "hello", /*ack=*/9), 1u);
  const Batch batch = outbox.Pop();
  EXPECT_TRUE(outbox.empty());
  EXPECT_EQ(batch.last_sequence, 1u);
  const std::vector<wire::Frame> frames = FramesOf(batch);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].header.type, FrameType::kMessage);
  EXPECT_EQ(frames[0].header.length, 5u);
  EXPECT_EQ(frames[0].header.flags, wire::kCompressed);
  EXPECT_EQ(frames[0].header.stream, 1u);
  EXPECT_EQ(frames[0].header.aux, 5u);
  EXPECT_EQ(frames[0].header.sequence, 1u);
  EXPECT_EQ(frames[0].header.ack, 9u);
}

TEST(Outbox, FramesThatWaitLeaveTogether) {
  base::BufferPool buffers;
  Outbox outbox(kMaxFrameBytes, &buffers);
  for (uint64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(outbox.Add(Header(FrameType::kMessage), "x", 0), i);
  }
  EXPECT_EQ(outbox.front().last_sequence, 3u);
  EXPECT_EQ(FramesOf(outbox.Pop()).size(), 3u);
  EXPECT_TRUE(outbox.empty());
}

TEST(Outbox, BytesOfAnswersAreCountedApart) {
  base::BufferPool buffers;
  Outbox outbox(kMaxFrameBytes, &buffers);
  outbox.Add(Header(FrameType::kMessage), "hello", 0);
  EXPECT_EQ(outbox.front().answer_bytes, 0u);
  const size_t before = outbox.front().bytes.size();
  outbox.Add(Header(FrameType::kPong), "12345678", 0, /*is_answer=*/true);
  EXPECT_EQ(outbox.front().answer_bytes, outbox.front().bytes.size() - before);
}

TEST(Outbox, NumbersGoOnAfterABatchHasLeft) {
  base::BufferPool buffers;
  Outbox outbox(kMaxFrameBytes, &buffers);
  outbox.Add(Header(FrameType::kMessage), "x", 0);
  outbox.Pop();
  EXPECT_EQ(outbox.Add(Header(FrameType::kMessage), "x", 0), 2u);
  EXPECT_EQ(FramesOf(outbox.front())[0].header.sequence, 2u);
}

TEST(Outbox, NoBatchGrowsAboveItsLimit) {
  base::BufferPool buffers;
  Outbox outbox(kMaxFrameBytes, &buffers);
  const std::string half(kMaxFrameBytes / 2 - wire::kFrameHeaderBytes, 'h');
  outbox.Add(Header(FrameType::kMessage), half, 0);
  // Fills the message exactly.
  outbox.Add(Header(FrameType::kMessage), half, 0);
  outbox.Add(Header(FrameType::kHalfClose), "", 0);
  EXPECT_EQ(outbox.front().bytes.size(), kMaxFrameBytes);
  EXPECT_EQ(outbox.Pop().last_sequence, 2u);
  EXPECT_EQ(outbox.Pop().last_sequence, 3u);
  EXPECT_TRUE(outbox.empty());
}

TEST(Outbox, FrameAboveTheLimitIsABatchOfItsOwn) {
  base::BufferPool buffers;
  Outbox outbox(100, &buffers);
  outbox.Add(Header(FrameType::kMessage), "small", 0);
  outbox.Add(Header(FrameType::kMessage), std::string(500, 'x'), 0);
  outbox.Add(Header(FrameType::kMessage), "small", 0);
  for (uint64_t sequence : {1u, 2u, 3u}) {
    const Batch batch = outbox.Pop();
    EXPECT_EQ(FramesOf(batch).size(), 1u);
    EXPECT_EQ(batch.last_sequence, sequence);
  }
}

TEST(Outbox, LongPayloadsAreCutAtTheFramesLimit) {
  for (size_t size :
       {kMaxFramePayload - 1, kMaxFramePayload, kMaxFramePayload + 1,
        2 * kMaxFramePayload, 5 * kMaxFramePayload + 17}) {
    base::BufferPool buffers;
    Outbox outbox(64 * 1024, &buffers);
    std::string payload(size, '\0');
    for (size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(i * 31);
    const uint64_t last = outbox.Add(Header(FrameType::kHeaders), payload, 4);
    EXPECT_EQ(last, (size + kMaxFramePayload - 1) / kMaxFramePayload);
    std::string joined;
    uint64_t sequence = 0;
    while (!outbox.empty()) {
      const Batch batch = outbox.Pop();
      EXPECT_LE(batch.bytes.size(), 64u * 1024);
      for (const wire::Frame& frame : FramesOf(batch)) {
        EXPECT_EQ(frame.header.sequence, ++sequence);
        EXPECT_EQ(frame.header.ack, 4u);
        EXPECT_EQ(frame.header.aux, 5u);
        EXPECT_EQ(frame.header.flags,
                  sequence < last ? wire::kCompressed | wire::kMoreFragments
                                  : wire::kCompressed);
        joined.append(frame.payload.begin(), frame.payload.end());
      }
      EXPECT_EQ(batch.last_sequence, sequence);
    }
    EXPECT_EQ(sequence, last);
    EXPECT_TRUE(joined == payload);
  }
}

}  // namespace
}  // namespace protocol
}  // namespace penstock
