// Tests the cost of messages with tensors for the codec, a store and a
// rendezvous, with numbers of any size. All share one time budget.

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "tensor_service/codec.h"
#include "tensor_service/codec/bundle_stream.h"
#include "tensor_service/rendezvous.pb.h"
#include "tensor_service/store.h"
#include "tensor_service/tensor.pb.h"
#include "tests/fuzz/bounds.h"
#include "tests/fuzz/rendezvous_calls.h"

namespace penstock {
namespace fuzz {
namespace {

// The store's budget. One message may be held in addition.
constexpr size_t kStoreBytes = 64 * 1024;
constexpr uint64_t kBudget = 2 * kStoreBytes + 16 * 1024;

grpc::ByteBuffer AsMessage(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes.push_back(static_cast<char>(value | 0x80));
  }
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

// Writes protobuf fields, most with the right lengths and numbers.
class Writer {
 public:
  explicit Writer(Random* random) : random_(random) {}

  std::string Bytes(uint32_t field, const std::string& bytes) {
    return absl::StrCat(Tag(field, 2),
                        Varint(random_->Mostly<uint64_t>(bytes.size())), bytes);
  }
  std::string Number(uint32_t field, uint64_t value) {
    return absl::StrCat(Tag(field, 0), Varint(value));
  }

  // Returns a message with a named tensor. The data has `size` bytes; the shape
  // may match or not.
  std::string NamedTensor(const std::string& name, size_t size) {
    const uint64_t dtype = random_->Mostly<uint64_t>(9);  // bytes
    std::string shape;
    if (random_->OneIn(2)) {
      shape = Varint(size);
    } else {
      for (uint64_t left = random_->Number(4); left > 0; --left) {
        shape += Varint(random_->Number(64));
      }
    }
    std::string tensor = absl::StrCat(Number(1, dtype), Bytes(2, shape),
                                      Bytes(4, std::string(size, 'd')));
    if (random_->OneIn(8)) tensor += Bytes(random_->Number(29) + 1, "unknown");
    return Bytes(1, Bytes(1, name) + Bytes(2, tensor));
  }

 private:
  std::string Tag(uint32_t field, uint32_t wire_type) {
    return Varint(random_->Mostly<uint64_t>(field << 3 | wire_type));
  }

  Random* const random_;
};

std::string AnyBundle(Random* random) {
  Writer writer(random);
  std::string bundle;
  for (uint64_t left = random->Number(3); left > 0; --left) {
    bundle += writer.NamedTensor(absl::StrCat("w", left), random->Number(13));
  }
  return bundle;
}

void DecodeAtRandom(Random* random) {
  const std::string input = AnyBundle(random);
  const Cost cost;
  const absl::StatusOr<tensor::Bundle> bundle =
      tensor::Decode(AsMessage(input));
  ASSERT_TRUE(cost.IsWithin(input.size(), kBudget));
}

std::string AnyPart(Random* random, uint64_t offset) {
  tensor::v1::PartHeader header;
  if (!random->OneIn(8)) {
    tensor::v1::Piece* const piece = header.mutable_piece();
    piece->set_dtype(
        static_cast<tensor::v1::DType>(random->Mostly<int32_t>(9)));
    piece->add_shape(random->OneIn(2) ? 20000 : random->Number(64));
    if (random->OneIn(4)) piece->add_shape(random->Number(64));
    piece->set_offset(random->Mostly(offset));
  }
  header.set_is_last(random->OneIn(8));
  Writer writer(random);
  return absl::StrCat(writer.NamedTensor("w", 1000),
                      writer.Bytes(2, header.SerializeAsString()));
}

// Joins messages like the service's PutStream.
void JoinAtRandom(Random* random) {
  tensor::TensorStore store(kStoreBytes);
  tensor::StoreReservation room(&store);
  tensor::BundleJoiner joiner([&](const std::string& name, size_t held) {
    return room.Add(name, held);
  });
  const Cost cost;
  size_t input_bytes = 0;
  absl::Status status;
  for (uint64_t offset = 0; status.ok() && offset < 8000; offset += 1000) {
    const std::string part = AnyPart(random, offset);
    input_bytes += part.size();
    const Cost cost_of_part;
    status = joiner.Add(AsMessage(part));
    ASSERT_TRUE(cost_of_part.IsWithin(part.size(), kBudget));
    ASSERT_TRUE(cost.IsWithin(input_bytes, kBudget));
  }
}

void SetKey(Random* random, tensor::v1::RendezvousKey* key) {
  key->set_step(random->OneIn(2) ? random->Below(4) : random->Number(64));
  key->set_name(
      std::string(std::min<uint64_t>(random->Number(11), 2 * 1024), 'n'));
  if (random->OneIn(4)) key->set_source(std::string(random->Number(11), 's'));
}

std::string AnyRequest(RendezvousCalls::Call call, Random* random) {
  Writer writer(random);
  tensor::v1::SendHeader send;
  SetKey(random, send.mutable_key());
  send.set_is_dead(random->OneIn(2));
  if (random->OneIn(2)) send.set_receivers(random->Number(32));
  const std::string tensor = writer.NamedTensor("", random->Number(10));
  switch (call) {
    case RendezvousCalls::kSend:
      return tensor + writer.Bytes(2, send.SerializeAsString());
    case RendezvousCalls::kExchange: {
      tensor::v1::RendezvousExchangeHeader exchange;
      *exchange.mutable_send() = send;
      SetKey(random, exchange.mutable_receive());
      return tensor + writer.Bytes(2, exchange.SerializeAsString());
    }
    case RendezvousCalls::kReceive:
      return writer.Bytes(1, send.key().SerializeAsString());
    case RendezvousCalls::kCancelStep:
      return writer.Number(1, send.key().step()) +
             writer.Number(2, random->Number(32)) +
             writer.Bytes(3, random->Text(5000));
    default:
      return writer.Number(1, send.key().step());
  }
}

void MeetAtRandom(Random* random) {
  const Cost cost;
  size_t input_bytes = 0;
  RendezvousCalls calls;
  for (int left = 30; left > 0; --left) {
    const auto call = static_cast<RendezvousCalls::Call>(
        random->OneIn(2) ? random->Below(2)
                         : random->Below(RendezvousCalls::kCalls));
    const std::string request = AnyRequest(call, random);
    input_bytes += request.size();
    const Cost cost_of_call;
    calls.Make(call, request);
    ASSERT_TRUE(cost_of_call.IsWithin(request.size(), kBudget));
    ASSERT_TRUE(cost.IsWithin(input_bytes, kBudget));
  }
}

TEST(TensorBounds, EachMessageCostsInProportionToItsBytes) {
  constexpr void (*kPairs[])(Random*) = {DecodeAtRandom, JoinAtRandom,
                                         MeetAtRandom};
  Random random;
  uint64_t inputs = 0;
  for (; random.GoesOn() && !HasFailure(); ++inputs) {
    kPairs[random.Below(3)](&random);
  }
  std::printf("%d inputs\n", static_cast<int>(inputs));
}

}  // namespace
}  // namespace fuzz
}  // namespace penstock
