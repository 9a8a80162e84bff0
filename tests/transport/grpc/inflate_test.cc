// Compares InflateMessage() with gRPC's own decompression, which has no limit.

#include "transport/grpc/filters/inflate.h"

#include <chrono>
#include <cstdio>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "src/core/lib/compression/message_compress.h"
#include "src/core/lib/slice/slice.h"

namespace penstock {
namespace core {
namespace {

constexpr uint64_t kNoLimit = uint64_t{1} << 60;

// Returns random text with repeating and non-repeating parts.
std::string AnyText(std::mt19937* random) {
  std::string text;
  const int pieces = static_cast<int>((*random)() % 8);
  for (int i = 0; i < pieces; ++i) {
    const size_t size = size_t{1} << (*random)() % 15;
    if ((*random)() % 2 == 0) {
      text.append(size, static_cast<char>((*random)()));
    } else {
      for (size_t k = 0; k < size; ++k) {
        text.push_back(static_cast<char>((*random)()));
      }
    }
  }
  return text;
}

// Cuts the bytes into slices of random size.
grpc_core::SliceBuffer Cut(const std::string& bytes, std::mt19937* random) {
  grpc_core::SliceBuffer buffer;
  for (size_t at = 0; at < bytes.size();) {
    const size_t size =
        std::min<size_t>(bytes.size() - at, 1 + (*random)() % 5000);
    buffer.AppendIndexed(
        grpc_core::Slice::FromCopiedString(bytes.substr(at, size)));
    at += size;
  }
  return buffer;
}

std::string Compress(grpc_compression_algorithm algorithm,
                     const std::string& text) {
  grpc_core::SliceBuffer input;
  input.Append(grpc_core::Slice::FromCopiedString(text));
  grpc_core::SliceBuffer output;
  EXPECT_EQ(grpc_msg_compress(algorithm, input.c_slice_buffer(),
                              output.c_slice_buffer()),
            1);
  return output.JoinIntoString();
}

class InflateTest : public testing::TestWithParam<grpc_compression_algorithm> {
};

TEST_P(InflateTest, LimitIsExact) {
  std::mt19937 random(1);
  for (const size_t size : {100, 1023, 1024, 1025, 70000, 3000000}) {
    const std::string text(size, 'x');
    const grpc_core::SliceBuffer input =
        Cut(Compress(GetParam(), text), &random);
    grpc_core::SliceBuffer whole;
    EXPECT_EQ(InflateMessage(GetParam(), input, size, &whole),
              Inflated::kWhole);
    EXPECT_TRUE(whole.JoinIntoString() == text);
    for (const size_t less : {size - 1, size / 2, size_t{0}}) {
      grpc_core::SliceBuffer output;
      EXPECT_EQ(InflateMessage(GetParam(), input, less, &output),
                Inflated::kTooLong);
      EXPECT_LE(output.Length(), less + 1);
    }
  }
}

TEST_P(InflateTest, DoesWhatGrpcDoesWithAnyBytes) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  int whole = 0;
  while (std::chrono::steady_clock::now() < end) {
    const std::string text = std::string(100, ' ') + AnyText(&random);
    grpc_core::SliceBuffer plain = Cut(text, &random);
    grpc_core::SliceBuffer compressed;
    if (grpc_msg_compress(GetParam(), plain.c_slice_buffer(),
                          compressed.c_slice_buffer()) == 0) {
      continue;
    }
    std::string bytes = compressed.JoinIntoString();
    switch (random() % 4) {
      case 0:
        bytes[random() % bytes.size()] ^= 1 << random() % 8;
        break;
      case 1:
        bytes.resize(random() % bytes.size() + 1);
        break;
      case 2:
        bytes.push_back(static_cast<char>(random()));
        break;
      default:
        break;
    }
    grpc_core::SliceBuffer input = Cut(bytes, &random);
    grpc_core::SliceBuffer expected;
    const bool is_good = grpc_msg_decompress(GetParam(), input.c_slice_buffer(),
                                             expected.c_slice_buffer()) == 1;
    grpc_core::SliceBuffer output;
    const Inflated got = InflateMessage(GetParam(), input, kNoLimit, &output);
    ASSERT_EQ(got, is_good ? Inflated::kWhole : Inflated::kDamaged);
    if (!is_good) continue;
    ++whole;
    ASSERT_TRUE(output.JoinIntoString() == expected.JoinIntoString());
  }
  EXPECT_GT(whole, 0);
}

TEST_P(InflateTest, SlicesAreFewAndShort) {
  std::mt19937 random(1);
  const std::string text(10 << 20, 'x');
  const grpc_core::SliceBuffer input = Cut(Compress(GetParam(), text), &random);
  grpc_core::SliceBuffer output;
  ASSERT_EQ(InflateMessage(GetParam(), input, kNoLimit, &output),
            Inflated::kWhole);
  EXPECT_LT(output.Count(), 20u);
}

TEST(Inflate, UnknownAlgorithmsAreDamage) {
  grpc_core::SliceBuffer input;
  input.Append(grpc_core::Slice::FromCopiedString("x"));
  for (const auto algorithm :
       {GRPC_COMPRESS_NONE, GRPC_COMPRESS_ALGORITHMS_COUNT}) {
    grpc_core::SliceBuffer output;
    EXPECT_EQ(InflateMessage(algorithm, input, kNoLimit, &output),
              Inflated::kDamaged);
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, InflateTest,
                         testing::Values(GRPC_COMPRESS_GZIP,
                                         GRPC_COMPRESS_DEFLATE));

}  // namespace
}  // namespace core
}  // namespace penstock
