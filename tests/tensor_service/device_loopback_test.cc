// Tests tensors that stay on devices: all of their bytes, or all that can.

#include "tests/tensor_service/device_loopback.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tensor_service/rendezvous_client.h"

namespace penstock::tensor {
namespace {

constexpr size_t kStreamed = 300 * 1000;  // bytes of a message, of several

TEST_P(DeviceLoopback, OnlyMethodsThatTakeTensorsAcceptThemOnDevices) {
  const bool keeps = GetParam() == DeviceTensors::kKeep;
  for (const char* method : {"TensorExchange/Put", "TensorExchange/PutStream",
                             "TensorExchange/Exchange", "TensorRendezvous/Send",
                             "TensorRendezvous/Exchange"}) {
    EXPECT_EQ(listener_.Accepts(absl::StrCat("/penstock.tensor.v1.", method)),
              keeps)
        << method;
  }
  for (const char* method :
       {"TensorExchange/Get", "TensorExchange/GetStream",
        "TensorExchange/Delete", "TensorExchange/List",
        "TensorRendezvous/Receive", "TensorRendezvous/CancelStep",
        "TensorRendezvous/FinishStep"}) {
    EXPECT_FALSE(
        listener_.Accepts(absl::StrCat("/penstock.tensor.v1.", method)))
        << method;
  }
}

TEST_P(DeviceLoopback, NothingIsAcceptedWithoutWhatCopies) {
  SetDeviceMemory(nullptr);
  listener_.accepted.clear();
  MakeTensorService(&store_, GetParam());
  MakeRendezvousService(&table_, GetParam());
  EXPECT_TRUE(listener_.accepted.empty());
  client_->Get({"none"}, {}, DeviceTensors::kKeep).IgnoreError();
  EXPECT_TRUE(listener_.calls.empty());
  SetDeviceMemory(&devices_);
}

TEST_P(DeviceLoopback, TheTransportHearsOfDestinationsAndOfWhatIsKept) {
  Bundle sent;
  sent.tensors.push_back({"x", Long()});
  ASSERT_TRUE(client_->Put(sent).ok());
  ASSERT_TRUE(client_->Get({"x"}).ok());
  EXPECT_TRUE(listener_.calls.empty());
  ASSERT_TRUE(client_->Get({"x"}, {}, DeviceTensors::kKeep).ok());
  ASSERT_EQ(listener_.calls.size(), 1u);
  EXPECT_TRUE(listener_.calls[0].ranges.empty());
  EXPECT_TRUE(listener_.calls[0].anywhere);
  std::vector<Destination> places = {{"x", Place(Long(), kSecond)},
                                     {"y", Place(Long(), Device())}};
  ASSERT_TRUE(client_->Get({"x"}, absl::MakeSpan(places)).ok());
  ASSERT_EQ(listener_.calls.size(), 2u);
  const Listener::Call& call = listener_.calls[1];
  EXPECT_FALSE(call.anywhere);
  ASSERT_EQ(call.ranges.size(), 2u);
  EXPECT_TRUE(call.ranges[0].on_device);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(call.ranges[0].data),
            places[0].into.buffer()->device_address());
  EXPECT_EQ(call.ranges[0].size, 100000u);
  EXPECT_FALSE(call.ranges[1].on_device);
}

TEST_P(DeviceLoopback, PutAndGetCarryThem) {
  for (int round = 0; round < 40; ++round) {
    const Bundle sent = Here();
    const Bundle there = There(sent);
    devices_.LetLend(round % 3);
    ASSERT_TRUE(client_->Put(there).ok());
    devices_.LetLend();
    if (round % 3 == 1) {
      for (const NamedTensor& named : store_.All().tensors) {
        EXPECT_EQ(named.tensor.device(), KeptAt(*there.Find(named.name)));
      }
    }
    const auto plain = client_->Get(Names(sent));
    ASSERT_TRUE(plain.ok()) << plain.status();
    for (const NamedTensor& named : plain->tensors) {
      EXPECT_TRUE(named.tensor.device().is_host());
    }
    ExpectSame(*plain, sent);
    std::vector<Destination> places = PlacesFor(sent);
    const auto got =
        client_->Get(Names(sent), absl::MakeSpan(places), DeviceTensors::kKeep);
    ASSERT_TRUE(got.ok()) << got.status();
    for (const Destination& place : places) {
      EXPECT_TRUE(place.used.ok()) << place.used;
      EXPECT_EQ(got->Find(place.name)->buffer(), place.into.buffer());
    }
    ExpectSame(*got, sent);
    client_->Delete(Names(sent)).IgnoreError();
  }
}

TEST_P(DeviceLoopback, WhatIsStoredIsNotThePeers) {
  const Tensor here = Long();
  auto there = std::make_unique<Tensor>(*here.ToDevice(kSecond));
  Bundle bundle;
  bundle.tensors.push_back({"x", *there});
  RendezvousClient rendezvous(channel_);
  ASSERT_TRUE(client_->Put(bundle).ok());
  ASSERT_TRUE(client_->PutStream({{{"y", *there}}}).ok());
  ASSERT_TRUE(client_->PutStream({{{"z", *there}}}, 70000).ok());
  ASSERT_TRUE(rendezvous.Send({1, "a", "", ""}, *there).ok());
  // Changes the memory, which nobody else holds any more.
  memset(devices_.Peek(there->buffer()->device_address()), 0, 100000);
  // Waits for the server, which frees a request after answering it.
  const absl::Time end = absl::Now() + absl::Seconds(10);
  while (there->buffer().use_count() > 2 && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(there->buffer().use_count(), 2);  // this one and the bundle's
  for (const char* name : {"x", "y", "z"}) {
    const auto got = store_.Get({name});
    ASSERT_TRUE(got.ok()) << got.status();
    const Tensor& tensor = got->tensors[0].tensor;
    EXPECT_EQ(tensor.device(), KeptAt(*there)) << name;
    EXPECT_EQ(tensor.ToHost()->bytes(), here.bytes()) << name;
  }
  const auto received = table_.Receive({1, "a", "", ""}, absl::Seconds(10));
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->tensor.device(), KeptAt(*there));
  EXPECT_EQ(received->tensor.ToHost()->bytes(), here.bytes());
}

TEST_P(DeviceLoopback, ExchangeBringsWhatWasThere) {
  const Bundle first = Here();
  ASSERT_TRUE(client_->Put(There(first)).ok());
  PreparedDestinations places(PlacesFor(first), DeviceTensors::kKeep);
  Bundle last = first;
  for (int round = 0; round < 20; ++round) {
    Bundle next = first;
    for (NamedTensor& named : next.tensors) {
      named.tensor = *named.tensor.Copy(HeapAllocator());
      if (named.tensor.byte_size() == 0) continue;
      named.tensor.buffer()->mutable_data()[0] = static_cast<char>(random_());
    }
    const auto got = client_->Exchange(There(next), &places);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->tensors.size(), last.tensors.size());
    for (const NamedTensor& named : last.tensors) {
      EXPECT_EQ(got->Find(named.name)->ToHost()->bytes(), named.tensor.bytes());
    }
    last = next;
  }
}

TEST_P(DeviceLoopback, StreamsCarryThemInPieces) {
  for (int round = 0; round < 10; ++round) {
    devices_.LetLend(round % 3);
    Bundle sent = Here();
    Tensor longer = *Tensor::Allocate(DType::kUint8, {kStreamed * 4 + 7});
    for (size_t i = 0; i < longer.byte_size(); ++i) {
      longer.buffer()->mutable_data()[i] = static_cast<char>(random_());
    }
    sent.tensors.push_back({"long", longer});
    Bundle there = There(sent);
    there.tensors.back().tensor = *longer.ToDevice(kSecond);
    const auto stored = client_->PutStream(there, kStreamed);
    ASSERT_TRUE(stored.ok()) << stored.status();
    ExpectSame(*store_.Get(Names(sent)), sent);
    const auto got = client_->GetStream(Names(sent), kStreamed);
    ASSERT_TRUE(got.ok()) << got.status();
    for (const NamedTensor& named : got->tensors) {
      EXPECT_TRUE(named.tensor.device().is_host());
    }
    ExpectSame(*got, sent);
  }
}

TEST_P(DeviceLoopback, RendezvousHandsThemOn) {
  RendezvousClient client(channel_);
  const Tensor here = Long();
  const Tensor there = *here.ToDevice(kFirst);
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(client.Send({1, name, "", ""}, there).ok());
  }
  const auto a =
      client.Receive({1, "a", "", ""}, nullptr, DeviceTensors::kKeep);
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->tensor.device(), KeptAt(there));
  EXPECT_EQ(a->tensor.ToHost()->bytes(), here.bytes());
  Destination place("", Place(here, kSecond));
  const auto b = client.Receive({1, "b", "", ""}, &place);
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_TRUE(place.used.ok()) << place.used;
  EXPECT_EQ(place.into.ToHost()->bytes(), here.bytes());
  const auto c =
      client.Exchange({1, "c", "", ""}, there, RendezvousClient::SendOptions(),
                      {1, "c", "", ""});
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->tensor.bytes(), here.bytes());
}

INSTANTIATE_TEST_SUITE_P(Options, DeviceLoopback,
                         testing::Values(DeviceTensors::kToHost,
                                         DeviceTensors::kKeep),
                         NameOfOption);

}  // namespace
}  // namespace penstock::tensor
