// Tests device tensors over Penstock's transport and over stock HTTP/2. This
// process has named its devices, so Penstock's transport gets slices in device
// memory. The transport sends these from the device, or copies them if it
// cannot.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "grpcpp/channel.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "penstock/destinations.h"
#include "penstock/device_slices.h"
#include "penstock/penstock.h"
#include "tensor_service/calls.h"
#include "tensor_service/client.h"
#include "tensor_service/codec.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/direct_receive.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/service.h"
#include "tensor_service/status.h"
#include "tensor_service/store.h"
#include "tests/tensor_service/fake_device.h"
#include "tests/tensor_service/random_bundle.h"
#include "transport/memory/device_access.h"
#include "transport/memory/device_ranges.h"

namespace penstock::tensor {
namespace {

constexpr Device kFirst = {Device::Kind::kCuda, 0};
constexpr Device kSecond = {Device::Kind::kCuda, 1};
constexpr Stream kStream = {0x1000};

// The transport's interface to the fake devices. Other processes cannot open
// the devices' memory.
class Access final : public memory::DeviceAccess {
 public:
  explicit Access(FakeDevices* devices) : devices_(devices) {}

  absl::Status CopyToHost(absl::Span<const uint8_t> from,
                          uint8_t* to) override {
    if (fails_) return absl::InternalError("told to fail, too");
    ++copies_;
    memcpy(to, devices_->Peek(reinterpret_cast<uintptr_t>(from.data())),
           from.size());
    return absl::OkStatus();
  }
  absl::Status CopyFromHost(absl::Span<const uint8_t> from,
                            uint8_t* to) override {
    if (fails_) return absl::InternalError("told to fail, too");
    memcpy(devices_->Peek(reinterpret_cast<uintptr_t>(to)), from.data(),
           from.size());
    return absl::OkStatus();
  }
  absl::StatusOr<memory::SharedAllocation> Share(
      absl::Span<const uint8_t>) override {
    return absl::FailedPreconditionError("nobody opens this");
  }
  absl::StatusOr<memory::OpenAllocation> Open(absl::string_view,
                                              uint64_t) override {
    return absl::FailedPreconditionError("nothing opens here");
  }
  absl::StatusOr<memory::Dmabuf> ExportDmabuf(
      absl::Span<const uint8_t>) override {
    return absl::FailedPreconditionError("there is no dmabuf");
  }

  void SetFails(bool fails) { fails_ = fails; }
  int copies() const { return copies_; }

 private:
  FakeDevices* const devices_;
  std::atomic<bool> fails_{false};
  std::atomic<int> copies_{0};
};

// A set of fake devices that lend memory, like CudaMemory.
class LentDevices final : public FakeDevices {
 public:
  LentDevices() : FakeDevices(2) {}

  absl::StatusOr<grpc::Slice> Lend(std::shared_ptr<Buffer> buffer) override {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): never dereferenced
    auto* const address = reinterpret_cast<uint8_t*>(buffer->device_address());
    const size_t size = buffer->size();
    const auto ready = buffer->ready();
    memory::DeviceRange::Poll poll;
    if (ready != nullptr) {
      poll = [this, ready] { return Query(*ready); };
    }
    return grpc::Slice(
        address, size, [](void* lent) { delete static_cast<Lent*>(lent); },
        new Lent(std::move(buffer), {address, size}, &access_,
                 std::move(poll)));
  }
  Access* access() { return &access_; }
  // Returns the number of queries for events that had not happened yet.
  int early() const { return early_; }

 private:
  // Returns nothing until the event has happened.
  absl::optional<absl::Status> Query(const DeviceEvent& event) {
    const absl::StatusOr<bool> completed = HasCompleted(event);
    if (!completed.ok()) return completed.status();
    if (!*completed) {
      ++early_;
      return absl::nullopt;
    }
    return absl::OkStatus();
  }

  struct Lent {
    Lent(std::shared_ptr<Buffer> held, absl::Span<const uint8_t> bytes,
         Access* access, memory::DeviceRange::Poll poll)
        : buffer(std::move(held)), range(bytes, access, std::move(poll)) {}

    const std::shared_ptr<Buffer> buffer;
    const memory::DeviceRange range;  // destroyed before the memory
  };

  Access access_{this};
  std::atomic<int> early_{0};
};

// Returns the process's devices, which the transport uses until the process
// ends.
LentDevices* Devices() {
  static auto* const devices = [] {
    auto* const made = new LentDevices;
    EXPECT_TRUE(memory::SetDevicesOfProcess(made->access()).ok());
    SetDeviceMemory(made);
    SetDefaultAllocator(PoolAllocator<penstock::Allocator>());
    SetDirectReceiver(
        DirectReceiverBy<penstock::Destinations>(&AcceptDeviceSlices));
    return made;
  }();
  return devices;
}

enum class Carrier { kShm, kTcp, kHttp2 };

class DeviceTransport : public testing::TestWithParam<Carrier> {
 protected:
  DeviceTransport() : devices_(Devices()) {
    tensors_ = MakeTensorService(&store_, DeviceTensors::kKeep);
    const bool is_stock = GetParam() == Carrier::kHttp2;
    Options options;
    options.policy = Policy::kRequire;
    options.fabrics = {GetParam() == Carrier::kShm ? Fabric::kShm
                                                   : Fabric::kTcp};
    grpc::ServerBuilder builder;
    if (!is_stock) Enable(&builder, options);
    AllowUnlimitedMessages(&builder);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(tensors_.get());
    server_ = builder.BuildAndStart();
    auto credentials = grpc::InsecureChannelCredentials();
    if (!is_stock) credentials = Credentials(credentials, options);
    channel_ = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                         credentials, UnlimitedMessages());
    client_ = std::make_unique<TensorClient>(channel_);
    EXPECT_TRUE(client_->List().ok());
  }
  ~DeviceTransport() override {
    client_.reset();
    channel_.reset();
    server_->Shutdown();
    server_->Wait();
  }

  static std::vector<std::string> Names(const Bundle& bundle) {
    std::vector<std::string> names;
    for (const NamedTensor& named : bundle.tensors) {
      names.push_back(named.name);
    }
    return names;
  }
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
      const Tensor& like = named.tensor;
      if (random_() % 3 == 0) {
        places.push_back(
            {named.name, *Tensor::Allocate(like.dtype(), like.shape())});
        continue;
      }
      auto buffer = *devices_->Allocate(random_() % 2 == 0 ? kFirst : kSecond,
                                        like.byte_size());
      places.push_back({named.name, *Tensor::FromBuffer(like.dtype(),
                                                        like.shape(), buffer)});
    }
    return places;
  }
  static void ExpectSame(const Bundle& got, const Bundle& sent) {
    ASSERT_EQ(Names(got), Names(sent));
    for (size_t i = 0; i < sent.tensors.size(); ++i) {
      EXPECT_EQ(got.tensors[i].tensor.ToHost()->bytes(),
                sent.tensors[i].tensor.bytes());
    }
  }

  const unsigned seed_ = std::random_device()();
  testing::ScopedTrace trace_{__FILE__, __LINE__, absl::StrCat("seed ", seed_)};
  std::mt19937 random_{seed_};
  LentDevices* const devices_;
  TensorStore store_{size_t{1} << 30};
  std::unique_ptr<grpc::Service> tensors_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TensorClient> client_;
};

TEST_P(DeviceTransport, CarriesThemBothWays) {
  for (int round = 0; round < 30; ++round) {
    const Bundle sent =
        RandomBundle(&random_, 1 << 20, HeapAllocator(), HeapAllocator());
    ASSERT_TRUE(client_->Put(There(sent)).ok());
    // Moves some of the stored tensors to devices, so that the server also
    // sends from devices.
    ASSERT_TRUE(store_.Put(There(sent)).ok());
    const auto plain = client_->Get(Names(sent));
    ASSERT_TRUE(plain.ok()) << plain.status();
    ExpectSame(*plain, sent);
    std::vector<Destination> places = PlacesFor(sent);
    const auto got =
        client_->Get(Names(sent), absl::MakeSpan(places), DeviceTensors::kKeep);
    ASSERT_TRUE(got.ok()) << got.status();
    for (const Destination& place : places) {
      EXPECT_TRUE(place.used.ok()) << place.used;
    }
    ExpectSame(*got, sent);
    ASSERT_TRUE(client_->PutStream(There(sent), 200000).ok());
    ExpectSame(*client_->GetStream(Names(sent), 200000), sent);
    client_->Delete(Names(sent)).IgnoreError();
  }
  EXPECT_GT(devices_->access()->copies(), 0);
}

// Tests a tensor that its producer has not written yet. Either the client waits
// before the call, or the sender passes unfinished bytes to the transport,
// which waits.
TEST_P(DeviceTransport, SendsOnceTheProducerHasWritten) {
  const size_t size = 100000;
  for (const bool by_client : {true, false}) {
    auto buffer = *devices_->Allocate(kFirst, size);
    char* const there = devices_->Peek(buffer->device_address());
    devices_->Queue(kFirst, kStream, [&] { memset(there, 'x', size); });
    const Bundle sent = {
        {{"x",
          *Tensor::FromBuffer(
              DType::kUint8, {static_cast<int64_t>(size)},
              Buffer::After(buffer, *devices_->Record(kFirst, kStream)))}}};
    if (by_client) {
      ASSERT_TRUE(client_->Put(sent).ok());
    } else {
      const int early = devices_->early();
      CallQueue queue;
      queue.Start(channel_, "/penstock.tensor.v1.TensorExchange/Put",
                  *Encode(sent), absl::Seconds(60));
      const absl::Status put = queue.Wait().front().status;
      ASSERT_TRUE(put.ok()) << put;
      EXPECT_GT(devices_->early(), early);
    }
    EXPECT_EQ(store_.Get({"x"})->tensors[0].tensor.ToHost()->bytes(),
              std::string(size, 'x'));
    client_->Delete({"x"}).IgnoreError();
  }
}

TEST_P(DeviceTransport, ADeviceThatFailsEndsTheCallAndNoOther) {
  Bundle sent;
  sent.tensors.push_back({"x", *Tensor::Allocate(DType::kUint8, {100000})});
  memset(sent.tensors[0].tensor.buffer()->mutable_data(), 'x', 100000);
  Bundle there;
  there.tensors.push_back({"x", *sent.tensors[0].tensor.ToDevice(kFirst)});
  ASSERT_TRUE(client_->Put(there).ok());
  ASSERT_TRUE(store_.Put(there).ok());
  devices_->access()->SetFails(true);
  for (const absl::Status& status :
       {client_->Put(there).status(), client_->Get({"x"}).status()}) {
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_NE(status.message().find("told to fail, too"), std::string::npos)
        << status;
  }
  devices_->access()->SetFails(false);
  EXPECT_TRUE(client_->Put(there).ok());
  ExpectSame(*client_->Get({"x"}), sent);
}

std::string NameOf(const testing::TestParamInfo<Carrier>& info) {
  const char* const names[] = {"Shm", "Tcp", "Http2"};
  return names[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Carriers, DeviceTransport,
                         testing::Values(Carrier::kShm, Carrier::kTcp,
                                         Carrier::kHttp2),
                         NameOf);

}  // namespace
}  // namespace penstock::tensor
