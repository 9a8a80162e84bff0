// Tests that keeping a tensor does not keep the rest of its message, and that
// the store counts its memory.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensor_service/codec.h"
#include "tensor_service/store.h"
#include "tensor_service/tensor.pb.h"

namespace penstock::tensor {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

Bundle Bytes(const std::string& name, size_t size) {
  Bundle bundle;
  bundle.tensors.push_back(
      {name, *Tensor::Of<uint8_t>({static_cast<int64_t>(size)},
                                  std::vector<uint8_t>(size, 7))});
  return bundle;
}

std::string Serialize(const Bundle& bundle) {
  grpc::Slice slice;
  EXPECT_TRUE(Encode(bundle)->DumpToSingleSlice(&slice).ok());
  return std::string(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
}

// Returns an unknown field.
std::string Padding(size_t size) {
  v1::GetRequest unknown;
  unknown.GetReflection()->MutableUnknownFields(&unknown)->AddLengthDelimited(
      1000, std::string(size, 'p'));
  return unknown.SerializeAsString();
}

// A received message in one slice that detects if it is held.
class Message {
 public:
  explicit Message(std::string bytes)
      : bytes_(std::make_shared<std::string>(std::move(bytes))) {}

  absl::StatusOr<Bundle> Decode() {
    auto* held = new std::shared_ptr<std::string>(bytes_);
    grpc::Slice slice(
        &(**held)[0], (*held)->size(),
        [](void* holder) {
          delete static_cast<std::shared_ptr<std::string>*>(holder);
        },
        held);
    return tensor::Decode(grpc::ByteBuffer(&slice, 1));
  }

  bool is_held() const { return bytes_.use_count() > 1; }

 private:
  const std::shared_ptr<std::string> bytes_;
};

TEST(HeldMemory, PaddingOfAMessageGoesWithIt) {
  for (const bool is_first : {true, false}) {
    const std::string tensor = Serialize(Bytes("w", kKiB));
    const std::string padding = Padding(16 * kMiB);
    Message message(is_first ? padding + tensor : tensor + padding);
    const auto bundle = message.Decode();
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    EXPECT_FALSE(message.is_held());
    EXPECT_EQ(bundle->tensors[0].tensor.bytes(), std::string(kKiB, 7));
    EXPECT_EQ(bundle->tensors[0].tensor.held_bytes(), kKiB);
  }
}

// Tests a field that occurs twice. The last one counts. The tensor must not
// keep the memory of the first one.
TEST(HeldMemory, DataThatIsReplacedGoesWithTheMessage) {
  v1::Bundle large;
  large.add_tensors()->mutable_tensor()->set_data(std::string(kMiB, 'x'));
  v1::NamedTensor small;
  small.mutable_tensor()->set_dtype(v1::DTYPE_UINT8);
  small.mutable_tensor()->add_shape(100);
  small.mutable_tensor()->set_data(std::string(100, 'y'));
  const std::string named =
      large.tensors(0).SerializeAsString() + small.SerializeAsString();
  v1::GetRequest outer;  // field 1 of GetRequest is a string of any bytes
  outer.GetReflection()->MutableUnknownFields(&outer)->AddLengthDelimited(
      1, named);
  Message message(outer.SerializeAsString());
  const auto bundle = message.Decode();
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_FALSE(message.is_held());
  EXPECT_EQ(bundle->tensors[0].tensor.bytes(), std::string(100, 'y'));
}

TEST(HeldMemory, HonestMessageIsReadInPlace) {
  Message message(Serialize(Bytes("w", kMiB)));
  const auto bundle = message.Decode();
  ASSERT_TRUE(bundle.ok());
  EXPECT_TRUE(message.is_held());
  EXPECT_GE(bundle->tensors[0].tensor.held_bytes(), kMiB);
}

// Tests handles, which lie in blocks of several. Each block must be freed with
// its last handle.
TEST(HeldMemory, AnyOneOfManyTensorsKeepsTheMessage) {
  constexpr size_t kTensors = 100;
  Bundle many;
  for (size_t i = 0; i < kTensors; ++i) {
    many.tensors.push_back(Bytes(std::to_string(i), kKiB + i).tensors[0]);
  }
  for (size_t kept = 0; kept < kTensors; ++kept) {
    Message message(Serialize(many));
    Tensor tensor;
    {
      const auto bundle = message.Decode();
      ASSERT_TRUE(bundle.ok()) << bundle.status();
      ASSERT_EQ(bundle->tensors.size(), kTensors);
      EXPECT_EQ(bundle->tensors[kept].name, std::to_string(kept));
      tensor = bundle->tensors[kept].tensor;
    }
    EXPECT_TRUE(message.is_held());
    EXPECT_EQ(tensor.bytes(), std::string(kKiB + kept, 7));
    EXPECT_GE(tensor.held_bytes(), kTensors * kKiB);
    tensor = Tensor();
    EXPECT_FALSE(message.is_held());
  }
}

TEST(HeldMemory, StoreCountsTheMessageThatItKeeps) {
  Message message(Serialize(Bytes("w", kMiB)) + Padding(kMiB / 2));
  TensorStore store(/*budget_bytes=*/kMiB + kMiB / 4);
  const auto put = store.Put(*message.Decode());
  EXPECT_EQ(put.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(message.is_held());
}

// Tests a message whose large tensor is deleted. The small one must not keep
// the memory of the whole message.
TEST(HeldMemory, StoreKeepsNoMessageForASmallPartOfIt) {
  Bundle both = Bytes("large", kMiB);
  both.tensors.push_back(Bytes("small", kKiB).tensors[0]);
  Message message(Serialize(both));
  TensorStore store(/*budget_bytes=*/8 * kMiB);
  ASSERT_TRUE(store.Put(*message.Decode()).ok());
  EXPECT_TRUE(message.is_held());
  EXPECT_EQ(store.Delete({{"large"}}), 1u);
  EXPECT_FALSE(message.is_held());
  const auto left = store.Get({{"small"}});
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(left->tensors[0].tensor.bytes(), std::string(kKiB, 7));
}

TEST(HeldMemory, TensorsWithoutElementsAreCountedToo) {
  TensorStore store(/*budget_bytes=*/2 * TensorStore::kEntryBytes + 1000);
  ASSERT_TRUE(store.Put(Bytes("a", 0)).ok());
  EXPECT_EQ(store.Put(Bytes(std::string(1000, 'n'), 0)).status().code(),
            absl::StatusCode::kResourceExhausted);
  const auto put = store.Put(Bytes(std::string(999, 'n'), 0));
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(*put, 2 * TensorStore::kEntryBytes + 1000);
  EXPECT_EQ(store.Delete({{"a"}}), 1u);
  EXPECT_TRUE(store.Put(Bytes("b", 0)).ok());
}

TEST(HeldMemory, WhatAnswersHoldCountsUntilTheyDropIt) {
  TensorStore store(/*budget_bytes=*/4 * kMiB);
  ASSERT_TRUE(store.Put(Bytes("x", kMiB)).ok());
  const size_t each = store.usage().bytes;
  const std::vector<std::string> twice(2, "x");
  absl::StatusOr<Bundle> answer = store.Lend(twice);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(store.usage().bytes, each) << "it is stored, and counts once";
  ASSERT_TRUE(store.Put(Bytes("x", kMiB)).ok());
  EXPECT_EQ(store.usage().bytes, 2 * each);
  EXPECT_EQ(store.Delete({{"x"}}), 1u);
  EXPECT_EQ(store.usage().bytes, each);
  EXPECT_EQ(answer->tensors[1].tensor.bytes(), std::string(kMiB, 7));
  answer->tensors.pop_back();
  EXPECT_EQ(store.usage().bytes, each);
  answer->tensors.pop_back();
  EXPECT_EQ(store.usage().bytes, 0u);
}

// Tests readers that stall. If each answer could hold its tensors, such a
// reader would make the store hold more memory in each round.
TEST(HeldMemory, AnswersThatStallKeepNoMoreThanTheBudget) {
  TensorStore store(/*budget_bytes=*/4 * kMiB);
  std::vector<Bundle> answers;
  absl::Status status;
  while (status.ok() && answers.size() < 100) {
    status = store.Put(Bytes("x", kMiB)).status();
    answers.push_back(*store.Lend({{"x"}}));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(answers.size(), 4u);  // three answers, and the last one repeated
  answers.clear();
  EXPECT_TRUE(store.Put(Bytes("x", kMiB)).ok());
  EXPECT_EQ(store.usage().tensors, 1u);
}

TEST(HeldMemory, ReplacedTensorsCountForWhoeverGotThem) {
  TensorStore store(/*budget_bytes=*/4 * kMiB);
  ASSERT_TRUE(store.Put(Bytes("x", kMiB)).ok());
  {
    Bundle replaced;
    ASSERT_TRUE(store.Put(Bytes("x", 2 * kMiB), &replaced).ok());
    EXPECT_GE(store.usage().bytes, 3 * kMiB);
    EXPECT_FALSE(store.Put(Bytes("x", 2 * kMiB), &replaced).ok());
  }
  EXPECT_LT(store.usage().bytes, 3 * kMiB);
  EXPECT_TRUE(store.Put(Bytes("x", 3 * kMiB)).ok()) << "nobody has the old one";
}

// Tests that a replaced tensor no longer counts against the budget, although
// the program that owns the store still uses it.
TEST(HeldMemory, WhatTheProgramGotIsItsOwn) {
  TensorStore store(/*budget_bytes=*/4 * kMiB);
  ASSERT_TRUE(store.Put(Bytes("x", 3 * kMiB)).ok());
  const auto mine = store.Get({{"x"}});
  ASSERT_TRUE(store.Put(Bytes("x", 3 * kMiB)).ok());
  EXPECT_EQ(mine->tensors[0].tensor.bytes().size(), 3 * kMiB);
}

TEST(HeldMemory, AnswerMayOutliveTheStore) {
  auto store = std::make_unique<TensorStore>(/*budget_bytes=*/4 * kMiB);
  ASSERT_TRUE(store->Put(Bytes("x", kMiB)).ok());
  const auto answer = store->Lend({{"x"}});
  store.reset();
  EXPECT_EQ(answer->tensors[0].tensor.bytes(), std::string(kMiB, 7));
}

TEST(HeldMemory, RoomOfAnswersIsSharedByClients) {
  TensorStore::Options options;
  options.answer_bytes = 100 * TensorStore::kAnswerEntryBytes;
  TensorStore store(options);
  EXPECT_FALSE(store.ReserveAnswer("a", 51, 0).ok());
  EXPECT_FALSE(store.ReserveAnswer("a", SIZE_MAX, SIZE_MAX).ok());
  const auto half = store.ReserveAnswer("a", 49, 1024);
  ASSERT_TRUE(half.ok()) << half.status();
  const absl::Status full = store.ReserveAnswer("a", 1, 0).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store.ReserveAnswer("b", 25, 0).ok());
  EXPECT_EQ(store.usage().answer_bytes, 50 * TensorStore::kAnswerEntryBytes);
}

}  // namespace
}  // namespace penstock::tensor
