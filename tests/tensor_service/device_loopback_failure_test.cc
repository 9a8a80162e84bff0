// Tests devices that fail or are not ready, and invalid requests on devices.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tensor_service/calls.h"
#include "tensor_service/rendezvous_client.h"
#include "tests/tensor_service/device_loopback.h"

namespace penstock::tensor {
namespace {

constexpr Stream kStream = {0x1000};

TEST_P(DeviceLoopback, ACallBeginsOnceItsDestinationsAreFree) {
  Bundle sent;
  sent.tensors.push_back({"x", Long()});
  ASSERT_TRUE(client_->Put(sent).ok());
  const Tensor memory = Place(Long(), kFirst);
  bool has_run = false;
  devices_.Queue(kFirst, kStream, [&] { has_run = true; });
  std::vector<Destination> places = {
      {"x",
       *Tensor::FromBuffer(
           DType::kUint8, memory.shape(),
           Buffer::After(memory.buffer(), *devices_.Record(kFirst, kStream)))}};
  devices_.FailAfter(0);
  const auto failed = client_->Get({"x"}, absl::MakeSpan(places));
  EXPECT_TRUE(absl::IsInternal(failed.status())) << failed.status();
  EXPECT_TRUE(
      absl::StrContains(failed.status().message(), "wait for destination x"))
      << failed.status();
  EXPECT_EQ(places[0].used, failed.status());
  EXPECT_FALSE(has_run);
  ASSERT_TRUE(client_->Get({"x"}, absl::MakeSpan(places)).ok());
  EXPECT_TRUE(has_run);
  EXPECT_EQ(memory.ToHost()->bytes(), sent.tensors[0].tensor.bytes());
}

TEST_P(DeviceLoopback, TheWaitForADestinationIsAPartOfTheCall) {
  Bundle sent;
  sent.tensors.push_back({"x", Long()});
  ASSERT_TRUE(client_->Put(sent).ok());
  const Tensor memory = Place(Long(), kFirst);
  devices_.Queue(kFirst, kStream, [] {});
  std::vector<Destination> places = {
      {"x",
       *Tensor::FromBuffer(
           DType::kUint8, memory.shape(),
           Buffer::After(memory.buffer(), *devices_.Record(kFirst, kStream)))}};
  devices_.SetStalled(true);
  TensorClient hasty(channel_, absl::Milliseconds(50));
  const absl::Status late = hasty.Get({"x"}, absl::MakeSpan(places)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_TRUE(absl::StrContains(late.message(), "destination x")) << late;
  EXPECT_EQ(places[0].used, late);
  TensorClient interrupted(channel_, absl::InfiniteDuration(),
                           [] { return true; });
  const absl::Status ended =
      interrupted.Get({"x"}, absl::MakeSpan(places)).status();
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
  devices_.SetStalled(false);
  TensorClient patient(channel_, absl::InfiniteDuration());
  EXPECT_TRUE(patient.Get({"x"}, absl::MakeSpan(places)).ok());
}

TEST_P(DeviceLoopback, TheWaitForWhatIsSentIsAPartOfTheCall) {
  const Tensor memory = Place(Long(), kFirst);
  devices_.Queue(kFirst, kStream, [] {});
  Bundle sent;
  sent.tensors.push_back(
      {"x",
       *Tensor::FromBuffer(
           DType::kUint8, memory.shape(),
           Buffer::After(memory.buffer(), *devices_.Record(kFirst, kStream)))});
  devices_.SetStalled(true);
  TensorClient hasty(channel_, absl::Milliseconds(50));
  for (const absl::Status& late :
       {hasty.Put(sent).status(), hasty.Exchange(sent).status(),
        RendezvousClient(channel_, absl::Milliseconds(50))
            .Send(RendezvousKey{0, "tensor", "", ""},
                  sent.tensors[0].tensor)}) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
    EXPECT_TRUE(absl::StrContains(late.message(), "has written")) << late;
  }
  TensorClient interrupted(channel_, absl::InfiniteDuration(),
                           [] { return true; });
  const absl::Status ended = interrupted.Put(sent).status();
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
  devices_.SetStalled(false);
  ASSERT_TRUE(client_->Put(sent).ok());
}

TEST(CallQueue, AWaitBeforeACallIsTakenFromItsTimeout) {
  CallQueue queue;
  int asked = 0;
  absl::Duration left = absl::Seconds(100);
  EXPECT_TRUE(queue.Await([&] { return ++asked == 5; }, &left).ok());
  EXPECT_EQ(asked, 5);
  EXPECT_LT(left, absl::Seconds(100));
  EXPECT_GT(left, absl::ZeroDuration());
  left = absl::Microseconds(100);
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(queue.Await([] { return false; }, &left)));
  EXPECT_EQ(left, absl::ZeroDuration());
  EXPECT_TRUE(queue.Await([] { return true; }, &left).ok());
  left = absl::InfiniteDuration();
  EXPECT_TRUE(queue.Await([&] { return ++asked > 8; }, &left).ok());
  EXPECT_EQ(left, absl::InfiniteDuration());
}

// Tests requests that generated code parses. A transport delivers requests on
// devices only for methods of AcceptAt(), which does not include these.
TEST_P(DeviceLoopback, AProtobufMessageOnADeviceIsRefused) {
  const std::string request("\x0a\x01x", 3);  // GetRequest, roughly
  for (const char* method :
       {"TensorExchange/Get", "TensorRendezvous/Receive"}) {
    const grpc::Slice slice = devices_.SliceOn(kFirst, request);
    CallQueue queue;
    queue.Start(channel_, absl::StrCat("/penstock.tensor.v1.", method),
                grpc::ByteBuffer(&slice, 1), absl::Seconds(10));
    EXPECT_TRUE(absl::IsInvalidArgument(queue.Wait().front().status)) << method;
  }
}

// Tests each device call with a failure: the RPC reports it or works around it,
// and the next RPC succeeds.
TEST_P(DeviceLoopback, AFailureEndsOneCallAndNothingElse) {
  Bundle sent = Here();
  sent.tensors.push_back({"long", Long()});
  Bundle there = There(sent);
  there.tensors.back().tensor = *sent.tensors.back().tensor.ToDevice(kFirst);
  std::vector<Destination> places = PlacesFor(sent);
  RendezvousClient rendezvous(channel_);
  uint64_t step = 1;
  const std::vector<std::function<absl::Status()>> uses = {
      [&] { return client_->Put(there).status(); },
      [&] {
        return client_->Get(Names(sent), absl::MakeSpan(places)).status();
      },
      [&] { return client_->Get(Names(sent)).status(); },
      [&] { return client_->Exchange(there, absl::MakeSpan(places)).status(); },
      [&] { return client_->PutStream(there, 40000).status(); },
      [&] { return client_->GetStream(Names(sent), 40000).status(); },
      [&] {
        return rendezvous
            .Exchange({step, "x", "", ""}, there.tensors.back().tensor,
                      RendezvousClient::SendOptions(), {step, "x", "", ""})
            .status();
      },
  };
  ASSERT_TRUE(client_->Put(there).ok());
  for (size_t i = 0; i < uses.size(); ++i) {
    for (int call = 0; call < 500; ++call) {
      devices_.FailAfter(call);
      const absl::Status status = uses[i]();
      if (!devices_.has_failed()) {
        EXPECT_TRUE(status.ok()) << i << ": " << status;
        break;
      }
      EXPECT_TRUE(absl::IsInternal(status)) << i << ": " << status;
      EXPECT_TRUE(absl::StrContains(status.message(), "told to fail"))
          << i << ": " << status;
      table_.FinishStep(step++);
    }
    devices_.FailAfter(-1);
    EXPECT_TRUE(client_->Put(there).ok());
    ExpectSame(*client_->Get(Names(sent)), sent);
  }
}

INSTANTIATE_TEST_SUITE_P(Options, DeviceLoopback,
                         testing::Values(DeviceTensors::kToHost,
                                         DeviceTensors::kKeep),
                         NameOfOption);

}  // namespace
}  // namespace penstock::tensor
