// Tests tensors on devices through clients and servers, over shm and stock
// HTTP/2.

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "penstock/destinations.h"
#include "penstock/penstock.h"
#include "tensor_service/client.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/direct_receive.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/rendezvous_client.h"
#include "tensor_service/rendezvous_service.h"
#include "tensor_service/service.h"
#include "tensor_service/status.h"
#include "tensor_service/store.h"
#include "tests/tensor_service/fake_device.h"
#include "tests/tensor_service/random_bundle.h"

namespace penstock::tensor {
namespace {

constexpr Device kFirst = {Device::Kind::kCuda, 0};
constexpr Device kSecond = {Device::Kind::kCuda, 1};
constexpr size_t kStreamed = 300 * 1000;  // bytes of a message, of several

std::vector<std::string> NamesOf(const Bundle& bundle) {
  std::vector<std::string> names;
  for (const NamedTensor& named : bundle.tensors) names.push_back(named.name);
  return names;
}

void ExpectSame(const Bundle& got, const Bundle& sent) {
  ASSERT_EQ(NamesOf(got), NamesOf(sent));
  for (size_t i = 0; i < sent.tensors.size(); ++i) {
    const auto here = got.tensors[i].tensor.ToHost();
    ASSERT_TRUE(here.ok()) << here.status();
    EXPECT_EQ(here->dtype(), sent.tensors[i].tensor.dtype());
    EXPECT_EQ(here->shape(), sent.tensors[i].tensor.shape());
    EXPECT_EQ(here->bytes(), sent.tensors[i].tensor.bytes());
  }
}

enum class Carrier { kShm, kHttp2 };

class DeviceService : public testing::TestWithParam<Carrier> {
 protected:
  DeviceService()
      : tensors_(MakeTensorService(&store_)),
        table_service_(MakeRendezvousService(&table_)) {
    SetDeviceMemory(&devices_);
    SetDefaultAllocator(PoolAllocator<penstock::Allocator>());
    SetDirectReceiver(DirectReceiverBy<penstock::Destinations>());
    Options options;
    options.policy = Policy::kRequire;
    options.fabrics = {Fabric::kShm};
    grpc::ServerBuilder builder;
    const bool is_stock = GetParam() == Carrier::kHttp2;
    if (!is_stock) Enable(&builder, options);
    AllowUnlimitedMessages(&builder);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(tensors_.get());
    builder.RegisterService(table_service_.get());
    server_ = builder.BuildAndStart();
    auto credentials = grpc::InsecureChannelCredentials();
    if (!is_stock) credentials = Credentials(credentials, options);
    channel_ = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                         credentials, UnlimitedMessages());
    client_ = std::make_unique<TensorClient>(channel_);
    EXPECT_TRUE(client_->List().ok());
  }
  ~DeviceService() override {
    table_.CancelAll(absl::UnavailableError("the test ends")).IgnoreError();
    client_.reset();
    channel_.reset();
    server_->Shutdown();
    server_->Wait();
    SetDirectReceiver(nullptr);
    SetDefaultAllocator(nullptr);
    SetDeviceMemory(nullptr);
    EXPECT_EQ(devices_.allocations(), 0u);
  }

  Bundle Here(size_t max_bytes) {
    return RandomBundle(&random_, max_bytes, HeapAllocator(), HeapAllocator());
  }
  // Returns the bundle with some tensors moved to either device.
  Bundle There(Bundle bundle) {
    const Device devices[] = {Device(), kFirst, kSecond};
    for (NamedTensor& named : bundle.tensors) {
      named.tensor = *named.tensor.ToDevice(devices[random_() % 3]);
    }
    return bundle;
  }
  std::vector<Destination> PlacesFor(const Bundle& bundle) {
    std::vector<Destination> places;
    for (const NamedTensor& named : bundle.tensors) {
      const Device device = random_() % 2 == 0 ? kFirst : kSecond;
      auto buffer = *devices_.Allocate(device, named.tensor.byte_size());
      places.push_back(
          {named.name, *Tensor::FromBuffer(named.tensor.dtype(),
                                           named.tensor.shape(), buffer)});
    }
    return places;
  }

  const unsigned seed_ = std::random_device()();
  testing::ScopedTrace trace_{__FILE__, __LINE__, absl::StrCat("seed ", seed_)};
  std::mt19937 random_{seed_};
  FakeDevices devices_{2};
  TensorStore store_{size_t{1} << 30};
  Rendezvous table_;
  const std::unique_ptr<grpc::Service> tensors_;
  const std::unique_ptr<grpc::Service> table_service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TensorClient> client_;
};

TEST_P(DeviceService, PutAndGetCarryThem) {
  for (int round = 0; round < 30; ++round) {
    const Bundle sent = Here(1 << 20);
    const auto stored = client_->Put(There(sent));
    ASSERT_TRUE(stored.ok()) << stored.status();
    const auto plain = client_->Get(NamesOf(sent));
    ASSERT_TRUE(plain.ok()) << plain.status();
    ExpectSame(*plain, sent);
    std::vector<Destination> places = PlacesFor(sent);
    const int copies = devices_.copies();
    const auto got = client_->Get(NamesOf(sent), absl::MakeSpan(places));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_LE(devices_.copies(), copies + 1);
    for (size_t i = 0; i < places.size(); ++i) {
      EXPECT_TRUE(places[i].used.ok()) << places[i].used;
      EXPECT_EQ(got->tensors[i].tensor.buffer(), places[i].into.buffer());
    }
    ExpectSame(*got, sent);
    client_->Delete(NamesOf(sent)).IgnoreError();
  }
}

TEST_P(DeviceService, ExchangeBringsWhatWasThereToADevice) {
  const Bundle first = Here(100000);
  ASSERT_TRUE(client_->Put(There(first)).ok());
  PreparedDestinations places(PlacesFor(first));
  Bundle last = first;
  for (int round = 0; round < 20; ++round) {
    Bundle next = first;
    for (NamedTensor& named : next.tensors) {
      named.tensor = *named.tensor.Copy(HeapAllocator());
      char* const data = named.tensor.buffer()->mutable_data();
      for (size_t i = 0; i < named.tensor.byte_size(); ++i) {
        data[i] = static_cast<char>(random_());
      }
    }
    const auto got = client_->Exchange(There(next), &places);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->tensors.size(), last.tensors.size());
    for (const Destination& place : places.destinations()) {
      EXPECT_TRUE(place.used.ok()) << place.used;
      EXPECT_EQ(place.into.ToHost()->bytes(), last.Find(place.name)->bytes());
    }
    last = next;
  }
}

TEST_P(DeviceService, StreamsCarryThemInPieces) {
  Bundle sent = Here(1 << 20);
  sent.tensors.push_back(
      {"long", *Tensor::Allocate(DType::kUint8, {kStreamed * 4 + 7})});
  char* const data = sent.tensors.back().tensor.buffer()->mutable_data();
  for (size_t i = 0; i < kStreamed * 4 + 7; ++i) {
    data[i] = static_cast<char>(random_());
  }
  Bundle there = There(sent);
  there.tensors.back().tensor = *sent.tensors.back().tensor.ToDevice(kSecond);
  const int copies = devices_.copies();
  const auto stored = client_->PutStream(there, kStreamed);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_GE(devices_.copies(), copies + 5);  // copied in several parts
  const auto got = client_->GetStream(NamesOf(sent), kStreamed);
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectSame(*got, sent);
}

TEST_P(DeviceService, RendezvousHandsThemOn) {
  RendezvousClient client(channel_);
  const Tensor here = *Tensor::Of<float>({3}, {1.f, 2.f, 3.f});
  const Tensor there = *here.ToDevice(kFirst);
  // Sends from a client and from the server's own process, and receives on a
  // device.
  ASSERT_TRUE(client.Send({1, "a", "", ""}, there).ok());
  ASSERT_TRUE(table_.Send({1, "b", "", ""}, there).ok());
  ASSERT_TRUE(table_.Send({1, "c", "", ""}, there).ok());
  const auto a = client.Receive({1, "a", "", ""});
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->tensor.bytes(), here.bytes());
  Destination place("", *Tensor::FromBuffer(DType::kF32, {3},
                                            *devices_.Allocate(kSecond, 12)));
  const auto b = client.Receive({1, "b", "", ""}, &place);
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_TRUE(place.used.ok()) << place.used;
  EXPECT_EQ(b->tensor.device(), kSecond);
  EXPECT_EQ(place.into.ToHost()->bytes(), here.bytes());
  // Receives within the process, which makes no copy.
  const auto c = table_.Receive({1, "c", "", ""}, absl::ZeroDuration());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->tensor.buffer(), there.buffer());
}

// Tests each device call with a failure: the RPC reports it, and the next RPC
// succeeds.
TEST_P(DeviceService, AFailureEndsOneCallAndNothingElse) {
  const Bundle sent = Here(20000);
  const Bundle there = There(sent);
  std::vector<Destination> places = PlacesFor(sent);
  RendezvousClient rendezvous(channel_);
  const Tensor one = *sent.tensors[0].tensor.ToDevice(kFirst);
  const std::vector<std::function<absl::Status()>> uses = {
      [&] { return client_->Put(there).status(); },
      [&] {
        return client_->Get(NamesOf(sent), absl::MakeSpan(places)).status();
      },
      [&] { return client_->Exchange(there, absl::MakeSpan(places)).status(); },
      [&] { return client_->PutStream(there, 4096).status(); },
      [&] {
        absl::Status status = rendezvous.Send({1, "x", "", ""}, one);
        return status.ok()
                   ? rendezvous.Receive({1, "x", "", ""}, &places[0]).status()
                   : status;
      },
      [&] {
        absl::Status status = table_.Send({1, "y", "", ""}, one);
        return status.ok() ? rendezvous.Receive({1, "y", "", ""}).status()
                           : status;
      },
  };
  ASSERT_TRUE(client_->Put(there).ok());
  for (size_t i = 0; i < uses.size(); ++i) {
    for (int call = 0; call < 200; ++call) {
      devices_.FailAfter(call);
      const absl::Status status = uses[i]();
      if (!devices_.has_failed()) {
        EXPECT_TRUE(status.ok()) << i << ": " << status;
        break;
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal)
          << i << ": " << status;
      EXPECT_NE(status.message().find("told to fail"), std::string::npos)
          << i << ": " << status;
    }
    devices_.FailAfter(-1);
    EXPECT_TRUE(client_->Put(there).ok());
    ExpectSame(*client_->Get(NamesOf(sent)), sent);
  }
}

INSTANTIATE_TEST_SUITE_P(Carriers, DeviceService,
                         testing::Values(Carrier::kShm, Carrier::kHttp2),
                         [](const auto& info) {
                           return std::string(
                               info.param == Carrier::kShm ? "Shm" : "Http2");
                         });

}  // namespace
}  // namespace penstock::tensor
