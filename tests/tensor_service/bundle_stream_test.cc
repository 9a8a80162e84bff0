#include "tensor_service/codec/bundle_stream.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tensor_service/codec.h"
#include "tests/tensor_service/random_bundle.h"

namespace penstock::tensor {
namespace {

constexpr size_t kKiB = 1024;

grpc::ByteBuffer Bytes(const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

std::vector<grpc::ByteBuffer> Cut(const Bundle& bundle, size_t bound) {
  BundleCutter cutter(bundle, bound);
  std::vector<grpc::ByteBuffer> messages;
  while (!cutter.done()) messages.push_back(*cutter.Next());
  return messages;
}

// Joins messages in separate memory, as a network delivers them.
absl::StatusOr<Bundle> Join(const std::vector<grpc::ByteBuffer>& messages,
                            absl::Span<Destination> destinations = {}) {
  BundleJoiner joiner(nullptr, DeviceTensors::kToHost, destinations);
  for (const grpc::ByteBuffer& message : messages) {
    grpc::Slice slice;
    EXPECT_TRUE(message.DumpToSingleSlice(&slice).ok());
    absl::Status status = joiner.Add(grpc::ByteBuffer(&slice, 1));
    if (!status.ok()) return status;
  }
  return joiner.Take();
}

Tensor OfBytes(size_t size, uint8_t value = 7) {
  return *Tensor::Of<uint8_t>({static_cast<int64_t>(size)},
                              std::vector<uint8_t>(size, value));
}

void ExpectSame(const Bundle& a, const Bundle& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_EQ(a.tensors[i].tensor.dtype(), b.tensors[i].tensor.dtype());
    EXPECT_EQ(a.tensors[i].tensor.shape(), b.tensors[i].tensor.shape());
    ASSERT_EQ(a.tensors[i].tensor.bytes(), b.tensors[i].tensor.bytes());
  }
}

TEST(BundleStream, CutAndJoinedIsTheSameBundle) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const Bundle bundle = RandomBundle(&random, 1 << (10 + random() % 11),
                                       HeapAllocator(), HeapAllocator());
    const size_t bound = kMinStreamMessageBytes + random() % (256 * kKiB);
    const auto messages = Cut(bundle, bound);
    for (const grpc::ByteBuffer& message : messages) {
      ASSERT_LE(message.Length(), bound);
    }
    const auto joined = Join(messages);
    ASSERT_TRUE(joined.ok()) << joined.status();
    ExpectSame(bundle, *joined);
  }
}

TEST(BundleStream, TensorsAreJoinedInTheirDestinations) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const Bundle bundle = RandomBundle(&random, 1 << (10 + random() % 11),
                                       HeapAllocator(), HeapAllocator());
    std::vector<Destination> destinations;
    for (const NamedTensor& named : bundle.tensors) {
      if (random() % 2 == 0) continue;
      destinations.emplace_back(
          named.name,
          *Tensor::Allocate(named.tensor.dtype(), named.tensor.shape()));
    }
    const auto joined =
        Join(Cut(bundle, kMinStreamMessageBytes + random() % (256 * kKiB)),
             absl::MakeSpan(destinations));
    ASSERT_TRUE(joined.ok()) << joined.status();
    ExpectSame(bundle, *joined);
    for (const Destination& destination : destinations) {
      EXPECT_TRUE(destination.used.ok()) << destination.used;
      EXPECT_EQ(joined->Find(destination.name)->buffer(),
                destination.into.buffer());
    }
  }
}

TEST(BundleStream, DestinationThatDoesNotFitSaysWhy) {
  const Bundle bundle = {{{"long", OfBytes(20 * kKiB, 1)},
                          {"short", OfBytes(5, 2)},
                          {"long", OfBytes(20 * kKiB, 3)},
                          {"short", OfBytes(5, 4)}}};
  std::vector<Destination> fit;
  fit.emplace_back("long", OfBytes(20 * kKiB));
  fit.emplace_back("short", OfBytes(5));
  fit.emplace_back("absent", OfBytes(5));
  auto joined = Join(Cut(bundle, 4 * kKiB), absl::MakeSpan(fit));
  ASSERT_TRUE(joined.ok()) << joined.status();
  ExpectSame(bundle, *joined);
  // Expects the first tensor of each name in the destination.
  EXPECT_EQ(fit[0].into.bytes(), bundle.tensors[0].tensor.bytes());
  EXPECT_EQ(fit[1].into.bytes(), bundle.tensors[1].tensor.bytes());
  EXPECT_EQ(fit[2].used.code(), absl::StatusCode::kNotFound);

  std::vector<Destination> others;
  others.emplace_back("long", OfBytes(20 * kKiB - 1));
  others.emplace_back("short", *Tensor::Allocate(DType::kInt8, {5}));
  joined = Join(Cut(bundle, 4 * kKiB), absl::MakeSpan(others));
  ASSERT_TRUE(joined.ok()) << joined.status();
  ExpectSame(bundle, *joined);
  for (const Destination& destination : others) {
    EXPECT_EQ(destination.used.code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(BundleStream, DestinationOfWhatIsCutIsNotUsed) {
  std::vector<Destination> destinations;
  destinations.emplace_back("x", OfBytes(20 * kKiB));
  auto messages = Cut({{{"x", OfBytes(20 * kKiB, 1)}}}, 4 * kKiB);
  messages.pop_back();
  EXPECT_FALSE(Join(messages, absl::MakeSpan(destinations)).ok());
  EXPECT_FALSE(destinations[0].used.ok());
}

TEST(BundleStream, EmptyBundleIsOneMessage) {
  const auto messages = Cut(Bundle(), 0);
  ASSERT_EQ(messages.size(), 1u);
  const auto joined = Join(messages);
  ASSERT_TRUE(joined.ok());
  EXPECT_TRUE(joined->tensors.empty());
}

TEST(BundleStream, LongNameExceedsTheBoundAndComesThrough) {
  Bundle bundle;
  bundle.tensors.push_back({std::string(20 * kKiB, 'n'), OfBytes(9 * kKiB)});
  const auto joined = Join(Cut(bundle, kMinStreamMessageBytes));
  ASSERT_TRUE(joined.ok()) << joined.status();
  ExpectSame(bundle, *joined);
}

TEST(BundleStream, PiecesAreSentFromTheTensorsOwnMemory) {
  Bundle bundle;
  bundle.tensors.push_back({"t", OfBytes(100 * kKiB)});
  const char* const begin = bundle.tensors[0].tensor.bytes().data();
  size_t expected = 0;
  for (const grpc::ByteBuffer& message : Cut(bundle, 16 * kKiB)) {
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(message.Dump(&slices).ok());
    // Expects the header in the first slice, and the elements in the second.
    ASSERT_EQ(slices.size(), 2u);
    EXPECT_EQ(reinterpret_cast<const char*>(slices[1].begin()),
              begin + expected);
    expected += slices[1].size();
  }
  EXPECT_EQ(expected, 100 * kKiB);
}

TEST(BundleStream, LargeTensorIsKeptWhereItArrived) {
  Bundle bundle;
  for (const char* name : {"a", "b", "c"}) {
    bundle.tensors.push_back({name, OfBytes(BundleCutter::kOwnMessageBytes)});
  }
  const auto messages = Cut(bundle, 0);
  ASSERT_EQ(messages.size(), 3u);
  BundleJoiner joiner;
  for (const grpc::ByteBuffer& message : messages) {
    ASSERT_TRUE(joiner.Add(message).ok());
  }
  const auto joined = joiner.Take();
  ASSERT_TRUE(joined.ok());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(joined->tensors[i].tensor.bytes().data(),
              bundle.tensors[i].tensor.bytes().data());
  }
}

// Messages of a hostile peer.
class HostileStream : public testing::Test {
 protected:
  // Returns a piece of `count` bytes of a tensor u8[size].
  static v1::BundlePart Piece(const std::string& name, int64_t size,
                              uint64_t offset, size_t count) {
    v1::BundlePart part;
    v1::Piece* piece = part.mutable_header()->mutable_piece();
    piece->set_dtype(v1::DTYPE_UINT8);
    piece->add_shape(size);
    piece->set_offset(offset);
    v1::NamedTensor* named = part.add_tensors();
    named->set_name(name);
    named->mutable_tensor()->set_dtype(v1::DTYPE_UINT8);
    named->mutable_tensor()->add_shape(static_cast<int64_t>(count));
    named->mutable_tensor()->set_data(std::string(count, 'd'));
    return part;
  }

  static v1::BundlePart Last() {
    v1::BundlePart part;
    part.mutable_header()->set_is_last(true);
    return part;
  }

  static absl::StatusCode CodeOf(const std::vector<v1::BundlePart>& parts) {
    BundleJoiner joiner;
    for (const v1::BundlePart& part : parts) {
      absl::Status status = joiner.Add(Bytes(part));
      if (!status.ok()) return status.code();
    }
    return joiner.Take().status().code();
  }
};

TEST_F(HostileStream, PiecesInOrderAreTaken) {
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), Piece("t", 8, 5, 3), Last()}),
            absl::StatusCode::kOk);
}

TEST_F(HostileStream, PiecesThatDoNotFollowOneAnotherAreRefused) {
  constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
  // Refuses a stream whose first piece is missing or comes second.
  EXPECT_EQ(CodeOf({Piece("t", 8, 5, 3), Piece("t", 8, 0, 5)}), kRefused);
  // Refuses a gap, an overlap or a repetition.
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), Piece("t", 8, 6, 2)}), kRefused);
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), Piece("t", 8, 4, 4)}), kRefused);
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), Piece("t", 8, 0, 5)}), kRefused);
  // Refuses a piece that is longer than the tensor, and a piece whose offset is
  // beyond all memory.
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 9)}), kRefused);
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), Piece("t", 8, 5, 4)}), kRefused);
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), Piece("t", 8, ~uint64_t{0}, 3)}),
            kRefused);
  // Refuses a tensor without its last bytes.
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), Last()}), kRefused);
}

TEST_F(HostileStream, TensorThatChangesBetweenItsPiecesIsRefused) {
  constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), Piece("u", 8, 5, 3)}), kRefused);
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), Piece("t", 9, 5, 3)}), kRefused);
  v1::BundlePart part = Piece("t", 8, 5, 3);
  part.mutable_header()->mutable_piece()->set_dtype(v1::DTYPE_INT8);
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), part}), kRefused);
  part = Piece("t", 8, 5, 3);
  part.mutable_header()->mutable_piece()->add_shape(1);
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), part}), kRefused);
  // Refuses a whole tensor between two pieces.
  part = Piece("w", 1, 0, 1);
  part.clear_header();
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 5), part}), kRefused);
}

TEST_F(HostileStream, PieceThatIsNoneIsRefused) {
  constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 0)}), kRefused);
  EXPECT_EQ(CodeOf({Piece("t", 0, 0, 1)}), kRefused);
  EXPECT_EQ(CodeOf({Piece("t", -1, 0, 1)}), kRefused);
  v1::BundlePart part = Piece("t", 8, 0, 5);
  *part.add_tensors() = part.tensors(0);
  EXPECT_EQ(CodeOf({part}), kRefused);
  part.clear_tensors();
  EXPECT_EQ(CodeOf({part}), kRefused);
  part = Piece("t", 8, 0, 4);
  part.mutable_tensors(0)->mutable_tensor()->set_dtype(v1::DTYPE_F32);
  part.mutable_tensors(0)->mutable_tensor()->set_shape(0, 1);
  EXPECT_EQ(CodeOf({part}), kRefused);
  for (const int dtype : {0, 11, -1}) {
    part = Piece("t", 8, 0, 4);
    part.mutable_header()->mutable_piece()->set_dtype(
        static_cast<v1::DType>(dtype));
    EXPECT_EQ(CodeOf({part}), kRefused) << dtype;
  }
  part = Piece("t", 8, 0, 4);
  for (int i = 0; i < 17; ++i) {
    part.mutable_header()->mutable_piece()->add_shape(1);
  }
  EXPECT_EQ(CodeOf({part}), kRefused);
  part = Piece("t", int64_t{1} << 62, 0, 4);
  part.mutable_header()->mutable_piece()->add_shape(int64_t{1} << 62);
  EXPECT_EQ(CodeOf({part}), kRefused);
}

TEST_F(HostileStream, ClaimOfMoreThanThereIsIsNoCrash) {
  EXPECT_EQ(CodeOf({Piece("t", int64_t{1} << 62, 0, 4)}),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(HostileStream, StreamMustEndWithItsLastMessage) {
  EXPECT_EQ(CodeOf({}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOf({Piece("t", 8, 0, 8)}), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CodeOf({Last(), Last()}), absl::StatusCode::kInvalidArgument);
}

TEST_F(HostileStream, RoomIsAskedForBeforeTheFirstPieceIsKept) {
  size_t asked = 0;
  BundleJoiner joiner([&asked](const std::string& name, size_t held_bytes) {
    EXPECT_EQ(name, "t");
    asked = held_bytes;
    return absl::ResourceExhaustedError("no room");
  });
  EXPECT_EQ(joiner.Add(Bytes(Piece("t", int64_t{1} << 40, 0, 1))).message(),
            "no room");
  EXPECT_EQ(asked, size_t{1} << 40);
}

TEST_F(HostileStream, AnyBytesGiveAStatusOrABundle) {
  std::string stream;
  for (unsigned seed = 0; seed < 20000; ++seed) {
    std::mt19937 random(seed);
    BundleJoiner joiner([](const std::string&, size_t held_bytes) {
      return held_bytes < kKiB ? absl::OkStatus()
                               : absl::ResourceExhaustedError("no room");
    });
    bool is_good = true;
    for (uint64_t at = 0; at < 8 && is_good; at += 2) {
      std::string bytes = Piece("t", 8, at, 2).SerializeAsString();
      if (random() % 2 == 0) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      grpc::Slice slice(bytes);
      is_good = joiner.Add(grpc::ByteBuffer(&slice, 1)).ok();
    }
    if (is_good) is_good = joiner.Add(Bytes(Last())).ok();
    if (!is_good) continue;
    const auto bundle = joiner.Take();
    ASSERT_TRUE(bundle.ok()) << "seed " << seed;
    for (const NamedTensor& named : bundle->tensors) {
      EXPECT_LE(named.tensor.byte_size(), kKiB) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace penstock::tensor
