// Tests tensors that are received into destinations. Over verbs the device
// writes to them directly; other paths make one copy.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tensor_service/client.h"
#include "tensor_service/direct_receive.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/prepared_destinations.h"
#include "tensor_service/rendezvous.h"
#include "tensor_service/rendezvous_client.h"
#include "tensor_service/rendezvous_service.h"
#include "tensor_service/service.h"
#include "tensor_service/status.h"
#include "tensor_service/store.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

using tensor::Bundle;
using tensor::Destination;
using tensor::DType;
using tensor::Tensor;

// The elements of a tensor that is large enough to be registered for a single
// use.
constexpr int64_t kFloats = 100 * 1000;
// The number of elements of a tensor that uses only permanently registered
// memory.
constexpr int64_t kFewer = 20 * 1000;

Tensor Filled(int64_t count, float value) {
  return *Tensor::Of<float>(
      {count}, std::vector<float>(static_cast<size_t>(count), value));
}
Tensor Empty(int64_t count) {
  return *Tensor::Allocate(DType::kF32, {count}, tensor::HeapAllocator());
}
float LastOf(const Tensor& tensor) { return tensor.flat<float>()->back(); }

class TensorDestinationsTest : public StackTest {
 protected:
  void SetUp() override {
    tensor::SetDirectReceiver(
        tensor::DirectReceiverBy<penstock::Destinations>());
    exchange_ = tensor::MakeTensorService(&store_);
    meeting_ = tensor::MakeRendezvousService(&rendezvous_);
    Serve(exchange_.get(), [this](grpc::ServerBuilder* builder) {
      tensor::AllowUnlimitedMessages(builder);
      builder->RegisterService(meeting_.get());
    });
    const auto channel = NewChannel(tensor::UnlimitedMessages());
    client_ = std::make_unique<tensor::TensorClient>(channel);
    meeter_ = std::make_unique<tensor::RendezvousClient>(channel);
  }
  ~TensorDestinationsTest() override {
    tensor::SetDirectReceiver(nullptr);
    StopServing(std::chrono::milliseconds(0));
  }

  bool lands() const { return GetParam() == Path::kVerbs; }

  void Put(const std::vector<std::pair<std::string, Tensor>>& tensors) {
    Bundle bundle;
    for (const auto& [name, tensor] : tensors) {
      bundle.tensors.push_back({name, tensor});
    }
    const auto put = client_->Put(bundle);
    ASSERT_TRUE(put.ok()) << put.status();
  }
  static void ExpectHas(const Destination& place, float value, bool landed) {
    EXPECT_TRUE(place.used.ok()) << place.used;
    EXPECT_EQ(place.landed, landed) << place.name;
    EXPECT_EQ(LastOf(place.into), value) << place.name;
  }

  tensor::TensorStore store_{1 << 30};
  tensor::Rendezvous rendezvous_;
  std::unique_ptr<grpc::Service> exchange_;
  std::unique_ptr<grpc::Service> meeting_;
  std::unique_ptr<tensor::TensorClient> client_;
  std::unique_ptr<tensor::RendezvousClient> meeter_;
};

TEST_P(TensorDestinationsTest, LargeTensorsLandThere) {
  Put({{"a", Filled(kFloats, 1)},
       {"b", Filled(2 * kFloats, 2)},
       {"short", Filled(10, 3)},
       {"c", Filled(kFloats, 4)}});
  std::vector<Destination> places = {
      {"a", Empty(kFloats)}, {"short", Empty(10)}, {"b", Empty(2 * kFloats)}};
  const auto got =
      client_->Get({"a", "short", "b", "c"}, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectHas(places[0], 1, lands());
  ExpectHas(places[1], 3, false);
  ExpectHas(places[2], 2, lands());
  EXPECT_EQ(LastOf(*got->Find("c")), 4);
  EXPECT_EQ(got->Find("a")->buffer(), places[0].into.buffer());
}

// Tests tensors that come in another order than expected. The transport
// identifies destinations only by size.
TEST_P(TensorDestinationsTest, TensorsThatComeInAnotherOrderAreSortedOut) {
  Put({{"a", Filled(kFloats, 1)},
       {"b", Filled(kFloats, 2)},
       {"c", Filled(kFloats, 3)}});
  std::vector<Destination> places = {
      {"b", Empty(kFloats)}, {"a", Empty(kFloats)}, {"x", Empty(kFloats)}};
  const auto got = client_->Get({"a", "b", "c"}, absl::MakeSpan(places));
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectHas(places[0], 2, false);
  ExpectHas(places[1], 1, false);
  EXPECT_TRUE(absl::IsNotFound(places[2].used));
  std::fill_n(places[2].into.buffer()->mutable_data(), 4 * kFloats, 'x');
  EXPECT_EQ(LastOf(*got->Find("c")), 3);
}

TEST_P(TensorDestinationsTest, DestinationOfAnotherSizeIsLeft) {
  Put({{"a", Filled(kFloats, 1)}});
  for (int64_t count : {kFloats - 1, kFloats + 1}) {
    std::vector<Destination> places = {{"a", Empty(count)}};
    const auto got = client_->Get({"a"}, absl::MakeSpan(places));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(absl::IsInvalidArgument(places[0].used)) << places[0].used;
    EXPECT_FALSE(places[0].landed);
    EXPECT_EQ(LastOf(*got->Find("a")), 1);
  }
}

TEST_P(TensorDestinationsTest, PreparedOnesMayBeSmallAndServeManyCalls) {
  std::vector<Destination> once;
  once.emplace_back("a", Empty(kFewer));
  once.emplace_back("b", Empty(kFloats));
  tensor::PreparedDestinations prepared(std::move(once));
  for (int i = 0; i < 5; ++i) {
    Put({{"a", Filled(kFewer, i)}, {"b", Filled(kFloats, 10 + i)}});
    const auto got = client_->Get({"a", "b"}, &prepared);
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectHas(prepared.destinations()[0], i, lands());
    ExpectHas(prepared.destinations()[1], 10 + i, lands());
  }
  Bundle other;
  other.tensors.push_back({"a", Filled(kFewer, 77)});
  ASSERT_TRUE(client_->Exchange(other, &prepared).ok());
  ExpectHas(prepared.destinations()[0], 4, lands());
  EXPECT_TRUE(absl::IsNotFound(prepared.destinations()[1].used));
}

TEST_P(TensorDestinationsTest, WrappedMemoryIsReleasedOnceNothingWritesThere) {
  Put({{"a", Filled(kFloats, 1)}});
  auto memory = std::make_shared<std::vector<float>>(kFloats);
  std::weak_ptr<std::vector<float>> alive = memory;
  float* const data = memory->data();
  {
    std::vector<Destination> places;
    places.emplace_back(
        "a", *Tensor::FromBuffer(
                 DType::kF32, {kFloats},
                 tensor::Buffer::Wrap(data, 4 * kFloats, /*writable=*/true,
                                      [memory = std::move(memory)] {})));
    ASSERT_TRUE(client_->Get({"a"}, absl::MakeSpan(places)).ok());
    EXPECT_EQ(data[kFloats - 1], 1);
    EXPECT_FALSE(alive.expired());
  }
  // Waits until the call is freed. Another thread of gRPC may briefly hold the
  // call.
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!alive.expired() && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_TRUE(alive.expired());
}

TEST_P(TensorDestinationsTest, CallThatFailsLeavesThemFree) {
  std::vector<Destination> places = {{"missing", Empty(kFloats)}};
  const auto got = client_->Get({"missing"}, absl::MakeSpan(places));
  EXPECT_TRUE(absl::IsNotFound(got.status())) << got.status();
  EXPECT_FALSE(places[0].used.ok());
  Put({{"missing", Filled(kFloats, 5)}});
  ASSERT_TRUE(client_->Get({"missing"}, absl::MakeSpan(places)).ok());
  ExpectHas(places[0], 5, lands());
}

// Tests that nothing writes to a destination after its call has returned. From
// then on, only the program may write.
TEST_P(TensorDestinationsTest, InterruptedCallWritesNothingAfterItsReturn) {
  constexpr int64_t kMany = 4 << 20;
  Put({{"a", Filled(kMany, 1)}});
  int interrupted = 0;
  for (int i = 0; i < 10; ++i) {
    tensor::TensorClient client(NewChannel(tensor::UnlimitedMessages()),
                                absl::Milliseconds(5 * i));
    std::vector<Destination> places = {{"a", Empty(kMany)}};
    const auto got = client.Get({"a"}, absl::MakeSpan(places));
    interrupted += !got.ok();
    char* const data = places[0].into.buffer()->mutable_data();
    std::fill_n(data, 4 * kMany, 'F');
    ASSERT_TRUE(client_->List().ok());
    EXPECT_EQ(std::count(data, data + 4 * kMany, 'F'), 4 * kMany) << i;
  }
  EXPECT_GT(interrupted, 0);
}

TEST_P(TensorDestinationsTest, RendezvousReceivesIntoOne) {
  const tensor::RendezvousKey key{1, "x", "w0", "w1"};
  ASSERT_TRUE(meeter_->Send(key, Filled(kFloats, 6)).ok());
  Destination place("whatever", Empty(kFloats));
  const auto got = meeter_->Receive(key, &place);
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectHas(place, 6, lands());
  EXPECT_EQ(got->tensor.buffer(), place.into.buffer());
  const tensor::RendezvousKey other{2, "x", "w0", "w1"};
  Destination small("", Empty(kFloats - 1));
  const auto both =
      meeter_->Exchange(other, Filled(kFloats, 7), {}, other, &small);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_TRUE(absl::IsInvalidArgument(small.used)) << small.used;
  EXPECT_EQ(LastOf(both->tensor), 7);
}

TEST_P(TensorDestinationsTest, WithoutAReceiverTheyAreCopiedTo) {
  tensor::SetDirectReceiver(nullptr);
  Put({{"a", Filled(kFloats, 1)}});
  std::vector<Destination> places = {{"a", Empty(kFloats)}};
  ASSERT_TRUE(client_->Get({"a"}, absl::MakeSpan(places)).ok());
  ExpectHas(places[0], 1, false);
}

INSTANTIATE_TEST_SUITE_P(Paths, TensorDestinationsTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
