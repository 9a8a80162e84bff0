#include "transport/memory/bytes.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace penstock {
namespace memory {
namespace {

Bytes Text(absl::string_view text) {
  auto owner = std::make_shared<std::string>(text);
  return Bytes{reinterpret_cast<const uint8_t*>(owner->data()), owner->size(),
               owner};
}

std::string Join(const std::vector<Bytes>& parts) {
  std::string all;
  for (const Bytes& part : parts) {
    EXPECT_GT(part.size, 0u);
    all.append(reinterpret_cast<const char*>(part.data), part.size);
  }
  return all;
}

Payload Pieces(const std::vector<std::string>& texts) {
  Payload payload;
  for (const std::string& text : texts) payload.Append(Text(text));
  return payload;
}

TEST(Bytes, PartSharesTheOwner) {
  Bytes part;
  std::weak_ptr<const void> owner;
  {
    Bytes whole = Text("hello world");
    owner = whole.owner;
    part = whole.Part(6, 5);
  }
  EXPECT_FALSE(owner.expired());
  EXPECT_EQ(Join({part}), "world");
  part = Bytes();
  EXPECT_TRUE(owner.expired());
}

TEST(Block, IsAlignedForTensors) {
  for (size_t size : {0, 1, 63, 64, 65, 4096, 1 << 20}) {
    absl::StatusOr<Block> block = AllocateBlock(size);
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_EQ(block->size, size);
    ASSERT_NE(block->data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data.get()) % 64, 0u);
    for (uint8_t& byte : block->span()) byte = 1;
  }
}

TEST(Block, BytesKeepItAlive) {
  Bytes bytes;
  {
    Block block = AllocateBlock(3).value();
    block.data.get()[2] = 42;
    bytes = block.AsBytes();
  }
  EXPECT_EQ(bytes.size, 3u);
  EXPECT_EQ(bytes.data[2], 42);
}

TEST(Block, SizeThatNoHeapHasIsAnError) {
  for (size_t size : {~size_t{0}, ~size_t{0} / 2, size_t{1} << 62}) {
    EXPECT_TRUE(absl::IsResourceExhausted(AllocateBlock(size).status()));
  }
}

TEST(Payload, StartsEmpty) {
  Payload payload;
  EXPECT_EQ(payload.size(), 0u);
  EXPECT_TRUE(payload.pieces().empty());
  EXPECT_TRUE(payload.Part(0, 0).empty());
  payload.CopyTo(nullptr);
}

TEST(Payload, EmptyPiecesLeaveNoTrace) {
  const Payload payload = Pieces({"", "ab", "", "c", ""});
  EXPECT_EQ(payload.size(), 3u);
  EXPECT_EQ(payload.pieces().size(), 2u);
  EXPECT_TRUE(Payload(Text("")).pieces().empty());
}

TEST(Payload, EveryPartOfManyPieces) {
  const std::string whole = "abcdefghij";
  const Payload payload = Pieces({"a", "bcd", "ef", "ghij"});
  for (size_t offset = 0; offset <= whole.size(); ++offset) {
    for (size_t length = 0; offset + length <= whole.size(); ++length) {
      EXPECT_EQ(Join(payload.Part(offset, length)),
                whole.substr(offset, length))
          << offset << " " << length;
    }
  }
}

TEST(Payload, PartsTakeNoMorePiecesThanTheyNeed) {
  const Payload payload = Pieces({"abc", "def"});
  EXPECT_EQ(payload.Part(0, 3).size(), 1u);
  EXPECT_EQ(payload.Part(3, 3).size(), 1u);
  EXPECT_EQ(payload.Part(2, 2).size(), 2u);
  EXPECT_EQ(payload.Part(2, 1)[0].owner, payload.pieces()[0].owner);
}

TEST(Payload, CopyToJoinsThePieces) {
  std::string out(7, '.');
  Pieces({"ab", "c", "def"}).CopyTo(reinterpret_cast<uint8_t*>(&out[0]));
  EXPECT_EQ(out, "abcdef.");
}

TEST(Payload, CopiesShareTheMemory) {
  const Payload payload = Pieces({"ab", "c"});
  const Payload copy = payload;
  EXPECT_EQ(copy.pieces()[0].data, payload.pieces()[0].data);
}

TEST(CopyBytes, OwnsItsBytesAndAlignsLongOnes) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{15}, size_t{16},
                      kAlignedBytes - 1, kAlignedBytes, size_t{100000}}) {
    std::string original(size, 'x');
    absl::StatusOr<Bytes> copy = CopyBytes(absl::MakeConstSpan(
        reinterpret_cast<const uint8_t*>(original.data()), size));
    ASSERT_TRUE(copy.ok()) << copy.status();
    original.assign(size, 'y');
    EXPECT_EQ(
        std::string(reinterpret_cast<const char*>(copy->data), copy->size),
        std::string(size, 'x'));
    if (size < kAlignedBytes) continue;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(copy->data) % 64, 0u);
  }
}

}  // namespace
}  // namespace memory
}  // namespace penstock
