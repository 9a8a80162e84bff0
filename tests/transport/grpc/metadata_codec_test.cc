#include "transport/grpc/metadata_codec.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/resource_quota/arena.h"
#include "src/core/lib/resource_quota/memory_quota.h"
#include "transport/base/byte_order.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {
namespace {

using grpc_core::Slice;

template <typename Number>
std::string Little(Number number) {
  std::string bytes(sizeof number, '\0');
  base::StoreLittle<Number>(number, reinterpret_cast<uint8_t*>(&bytes[0]));
  return bytes;
}

std::string Literal(const std::string& key, const std::string& value) {
  return std::string(1, '\0') + Little<uint32_t>(key.size()) +
         Little<uint32_t>(value.size()) + key + value;
}

std::string Known(char number, const std::string& value) {
  return std::string(1, number) + Little<uint32_t>(value.size()) + value;
}

class MetadataCodecTest : public testing::Test {
 protected:
  struct Batch {
    explicit Batch(grpc_core::MemoryAllocator* allocator)
        : arena(grpc_core::MakeScopedArena(1024, allocator)),
          metadata(arena.get()) {}
    grpc_core::ScopedArenaPtr arena;
    grpc_metadata_batch metadata;
  };

  std::unique_ptr<Batch> NewBatch() {
    return std::unique_ptr<Batch>(new Batch(&allocator_));
  }
  std::string Encode(const Batch& batch) {
    std::string out = "of before";
    EncodeMetadata(batch.metadata, nullptr, nullptr, &out);
    return out;
  }
  // Encodes like a connection: sends each entry before the first use of the
  // entry's number.
  std::string EncodeWithNumbers(const Batch& batch) {
    std::string out;
    EncodeMetadata(
        batch.metadata, &sent_,
        [this](uint8_t number, absl::string_view entry) {
          told_.push_back(std::string(entry));
          EXPECT_TRUE(received_.Add(number, entry).ok());
        },
        &out);
    return out;
  }
  std::unique_ptr<Batch> Decode(const std::string& bytes) {
    std::unique_ptr<Batch> batch = NewBatch();
    const absl::Status status =
        DecodeMetadata(bytes, received_, SIZE_MAX, &batch->metadata, &size_);
    EXPECT_TRUE(status.ok()) << status;
    return batch;
  }
  absl::Status StatusOf(const std::string& bytes, size_t max_bytes = SIZE_MAX) {
    return DecodeMetadata(bytes, received_, max_bytes, &NewBatch()->metadata,
                          &size_);
  }
  static std::string Text(const Batch& batch, absl::string_view key) {
    std::string backing;
    return std::string(
        batch.metadata.GetStringValue(key, &backing).value_or("(none)"));
  }

  SentEntries sent_;
  ReceivedEntries received_;
  std::vector<std::string> told_;
  size_t size_ = 0;

  grpc_core::ExecCtx exec_ctx_;
  grpc_core::MemoryQuotaRefPtr quota_ = grpc_core::MakeMemoryQuota("test");
  grpc_core::MemoryAllocator allocator_ = quota_->CreateMemoryAllocator("test");
};

// Checks the numbers of docs/protocol.md. A changed number would be a different
// protocol.
TEST_F(MetadataCodecTest, WhatEachCallHasIsOneByte) {
  auto batch = NewBatch();
  batch->metadata.Set(grpc_core::HttpMethodMetadata(),
                      grpc_core::HttpMethodMetadata::kPost);
  batch->metadata.Set(grpc_core::HttpSchemeMetadata(),
                      grpc_core::HttpSchemeMetadata::kHttps);
  batch->metadata.Set(grpc_core::TeMetadata(),
                      grpc_core::TeMetadata::kTrailers);
  batch->metadata.Set(grpc_core::ContentTypeMetadata(),
                      grpc_core::ContentTypeMetadata::kApplicationGrpc);
  batch->metadata.Set(grpc_core::GrpcStatusMetadata(), GRPC_STATUS_OK);
  batch->metadata.Set(grpc_core::GrpcEncodingMetadata(), GRPC_COMPRESS_NONE);
  std::string bytes = Encode(*batch);
  auto decoded = Decode(bytes);
  std::sort(bytes.begin(), bytes.end());
  EXPECT_EQ(bytes, "\x80\x82\x83\x84\x85\x86");
  EXPECT_EQ(Text(*decoded, ":method"), "POST");
  EXPECT_EQ(Text(*decoded, ":scheme"), "https");
  EXPECT_EQ(Text(*decoded, "te"), "trailers");
  EXPECT_EQ(Text(*decoded, "content-type"), "application/grpc");
  EXPECT_EQ(Text(*decoded, "grpc-status"), "0");
  EXPECT_EQ(Text(*decoded, "grpc-encoding"), "identity");
  EXPECT_EQ(Text(*Decode("\x81"), ":scheme"), "http");
}

TEST_F(MetadataCodecTest, KeysHaveTheNumbersOfTheProtocol) {
  const std::vector<std::pair<std::string, std::string>> keys = {
      {":path", "/a.b/c"},
      {":authority", "host:1"},
      {":method", "PUT"},
      {":status", "200"},
      {":scheme", "https"},
      {"content-type", ""},
      {"te", "trailers"},
      {"grpc-encoding", "gzip"},
      {"", ""},
      {"grpc-status", "5"},
      {"", ""},
      {"grpc-previous-rpc-attempts", "2"},
      {"grpc-retry-pushback-ms", "100"},
      {"user-agent", "an agent of more than 23 bytes"},
      {"grpc-message", "no%20such"},
      {"host", "host"},
      {"endpoint-load-metrics-bin", std::string("\0\xff", 2)},
      {"grpc-server-stats-bin", "stats"},
      {"grpc-trace-bin", "trace"},
      {"grpc-tags-bin", "tags"}};
  for (size_t i = 0; i < keys.size(); ++i) {
    // Skips keys with a number as value, which are tested below.
    if (keys[i].first.empty()) continue;
    SCOPED_TRACE(keys[i].first);
    auto decoded = Decode(Known(static_cast<char>(i + 1), keys[i].second));
    EXPECT_EQ(Text(*decoded, keys[i].first), keys[i].second);
    // Decodes the key as a literal, which must give the same entry.
    auto literal = Decode(Literal(keys[i].first, keys[i].second));
    EXPECT_EQ(Text(*literal, keys[i].first), keys[i].second);
    EXPECT_EQ(Encode(*literal), Encode(*decoded));
  }
}

TEST_F(MetadataCodecTest, DeadlineKeepsItsMilliseconds) {
  auto batch = NewBatch();
  const auto now = grpc_core::Timestamp::Now();
  batch->metadata.Set(grpc_core::GrpcTimeoutMetadata(),
                      now + grpc_core::Duration::Milliseconds(1234567));
  EXPECT_EQ(Encode(*batch), Known(11, Little<uint64_t>(1234567)));
  auto decoded = Decode(Encode(*batch));
  EXPECT_EQ(*decoded->metadata.get(grpc_core::GrpcTimeoutMetadata()) - now,
            grpc_core::Duration::Milliseconds(1234567));
}

TEST_F(MetadataCodecTest, NoDeadlineIsTooExtreme) {
  const auto now = grpc_core::Timestamp::Now();
  for (int64_t left : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    auto decoded = Decode(Known(11, Little<uint64_t>(left)));
    const auto deadline =
        decoded->metadata.get(grpc_core::GrpcTimeoutMetadata());
    ASSERT_TRUE(deadline.has_value());
    EXPECT_EQ(*deadline > now, left > 0) << left;
  }
}

TEST_F(MetadataCodecTest, AcceptedEncodingsAreASet) {
  auto batch = NewBatch();
  batch->metadata.Set(
      grpc_core::GrpcAcceptEncodingMetadata(),
      grpc_core::CompressionAlgorithmSet::FromString("identity, gzip"));
  EXPECT_EQ(Encode(*batch), Known(9, Little<uint64_t>(5)));
  EXPECT_EQ(Text(*Decode(Encode(*batch)), "grpc-accept-encoding"),
            "identity, gzip");
  // Decodes a set whose bits name algorithms that do not exist yet.
  EXPECT_EQ(Text(*Decode(Known(9, Little<uint64_t>(~uint64_t{0}))),
                 "grpc-accept-encoding"),
            "identity, deflate, gzip");
}

// Tests that the set always contains identity. libgrpc asserts this (call.cc),
// so a peer could otherwise end the process by omitting identity.
TEST_F(MetadataCodecTest, IdentityIsAlwaysAmongTheAcceptedEncodings) {
  for (uint64_t set : {uint64_t{0}, uint64_t{2}, ~uint64_t{1}}) {
    auto decoded = Decode(Known(9, Little<uint64_t>(set)));
    const auto* const accepted =
        decoded->metadata.get_pointer(grpc_core::GrpcAcceptEncodingMetadata());
    ASSERT_NE(accepted, nullptr);
    EXPECT_TRUE(accepted->IsSet(GRPC_COMPRESS_NONE)) << set;
  }
}

TEST_F(MetadataCodecTest, WhatGrpcLetsNobodySendIsRefused) {
  EXPECT_FALSE(StatusOf(Literal("", "x")).ok());
  EXPECT_FALSE(StatusOf(Literal("Upper", "x")).ok());
  EXPECT_FALSE(StatusOf(Literal("a\nb", "x")).ok());
  EXPECT_FALSE(StatusOf(Literal("key", "a\r\nb")).ok());
  EXPECT_FALSE(StatusOf(Literal("key", std::string(1, '\0'))).ok());
  // Refuses grpclb_client_stats. gRPC aborts when it encodes or measures this
  // entry.
  EXPECT_FALSE(StatusOf(Literal("grpclb_client_stats", "x")).ok());
  EXPECT_FALSE(
      StatusOf(Literal("grpc-internal-encoding-request", "gzip")).ok());
  EXPECT_TRUE(StatusOf(Literal("key-bin", std::string(1, '\0'))).ok());
}

TEST_F(MetadataCodecTest, OfARefusedBatchNothingIsLeft) {
  auto batch = NewBatch();
  // Ends the metadata with an unknown method. A batch that was decoded in part
  // would have two entries: the good entry, and gRPC's value for an unknown
  // method.
  const std::string bytes = Literal("good", "x") + Known(3, "NONSENSE");
  EXPECT_FALSE(
      DecodeMetadata(bytes, received_, SIZE_MAX, &batch->metadata, &size_)
          .ok());
  EXPECT_TRUE(batch->metadata.empty());
  EXPECT_EQ(batch->metadata.get_pointer(grpc_core::HttpMethodMetadata()),
            nullptr);
}

TEST_F(MetadataCodecTest, OtherKeysKeepTheirOrderAndBytes) {
  const std::string bytes = Literal("key", "value") + Literal("key", "again") +
                            Literal("key-bin", std::string("\0\xff\n", 3)) +
                            Literal("empty", "");
  auto decoded = Decode(bytes);
  EXPECT_EQ(Text(*decoded, "key"), "value,again");
  EXPECT_EQ(Encode(*decoded), bytes);
}

TEST_F(MetadataCodecTest, ValuesOutliveTheirBytes) {
  const std::string long_value(1000, 'x');
  std::string bytes = Literal("key", long_value) + Known(1, long_value);
  auto decoded = Decode(bytes);
  bytes.assign(bytes.size(), 'y');
  EXPECT_EQ(Text(*decoded, "key"), long_value);
  EXPECT_EQ(Text(*decoded, ":path"), long_value);
}

TEST_F(MetadataCodecTest, StatusIsWhatTheTrailersOfACallAre) {
  EXPECT_EQ(EncodeStatus(absl::OkStatus()), "\x85");
  auto decoded = Decode(EncodeStatus(absl::NotFoundError("100 % not\n")));
  EXPECT_EQ(Text(*decoded, "grpc-status"), "5");
  EXPECT_EQ(Text(*decoded, "grpc-message"), "100 %25 not%0A");
}

TEST_F(MetadataCodecTest, NonsenseIsRefused) {
  for (const std::string& bytes :
       {std::string("\x15"), std::string("\x7f"), std::string("\x87"),
        std::string("\xbf"), std::string("\xff"), Known(21, "x"),
        Known(9, "1234567"), Known(11, "10S"), Known(10, "x"),
        Literal(":scheme", "ftp"), std::string("\x80\x80\x87")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(bytes)))
        << testing::PrintToString(bytes);
  }
}

TEST_F(MetadataCodecTest, WhatRepeatsGetsANumber) {
  auto batch = Decode(Known(1, "/a.b/c") + Known(14, "agent") +
                      Literal("key", "value") + "\x80");
  EXPECT_EQ(EncodeWithNumbers(*batch), Encode(*batch));  // the first time
  EXPECT_EQ(told_.size(), 0u);
  const std::string second = EncodeWithNumbers(*batch);
  EXPECT_EQ(told_.size(), 3u);
  EXPECT_EQ(second.size(), 4u);
  EXPECT_EQ(EncodeWithNumbers(*batch), second);
  EXPECT_EQ(told_.size(), 3u);
  auto decoded = Decode(second);
  EXPECT_EQ(Encode(*decoded), Encode(*batch));
  // Expects the size in which gRPC's limits are measured.
  EXPECT_EQ(size_,
            4 + 3 * 32 + told_[0].size() + told_[1].size() + told_[2].size());
}

TEST_F(MetadataCodecTest, WhatDiffersInEachCallGetsNone) {
  for (int i = 0; i < 1000; ++i) {
    auto batch =
        Decode(Literal("id", std::to_string(i)) +
               Known(11, Little<uint64_t>(1000)) + Literal("key", "value"));
    Decode(EncodeWithNumbers(*batch));
  }
  EXPECT_EQ(told_, std::vector<std::string>{Literal("key", "value")});
}

TEST_F(MetadataCodecTest, ValuesOutliveTheNumbers) {
  const std::string entry = Literal("key", std::string(100, 'x'));
  auto received = std::unique_ptr<ReceivedEntries>(new ReceivedEntries);
  ASSERT_TRUE(received->Add(kFirstEntry, entry).ok());
  auto batch = NewBatch();
  ASSERT_TRUE(
      DecodeMetadata("\xc0", *received, 1000, &batch->metadata, &size_).ok());
  received = nullptr;
  EXPECT_EQ(Text(*batch, "key"), std::string(100, 'x'));
}

TEST_F(MetadataCodecTest, NumbersMayNotStandForMoreThanTheLimit) {
  ASSERT_TRUE(received_.Add(kFirstEntry, Literal("key", "value")).ok());
  const size_t each = Literal("key", "value").size() + 32;
  EXPECT_TRUE(StatusOf(std::string(10, '\xc0'), 10 * each).ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(StatusOf(std::string(11, '\xc0'), 10 * each)));
  EXPECT_TRUE(absl::IsResourceExhausted(
      StatusOf(std::string(10 << 20, '\xc0'), 10 * each)));
}

TEST_F(MetadataCodecTest, NumbersOfNonsenseAreRefused) {
  const std::string entries[] = {"",
                                 "\xc0",
                                 Literal("key", "value") + "x",
                                 "\x80\x80",
                                 Literal("key", "value").substr(0, 9),
                                 "\x15",
                                 Known(10, "x")};
  uint32_t number = kFirstEntry;
  for (const std::string& entry : entries) {
    ASSERT_TRUE(received_.Add(number, entry).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(
        StatusOf(std::string(1, static_cast<char>(number)))))
        << testing::PrintToString(entry);
    ++number;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      StatusOf(std::string(1, static_cast<char>(number)))));
}

TEST_F(MetadataCodecTest, EachCutIsRefused) {
  for (const std::string& entry : {Literal("key", "value"), Known(1, "/path"),
                                   Known(11, Little<uint64_t>(5))}) {
    for (size_t length = 1; length < entry.size(); ++length) {
      EXPECT_TRUE(
          absl::IsInvalidArgument(StatusOf("\x80" + entry.substr(0, length))))
          << length << " of " << testing::PrintToString(entry);
    }
  }
}

}  // namespace
}  // namespace core
}  // namespace penstock
