// A fixture with clients and services whose transport delivers messages on
// devices. The transport is gRPC's in-process one, which moves slices without
// reading them.

#ifndef PENSTOCK_TESTS_TENSOR_SERVICE_DEVICE_LOOPBACK_H_
#define PENSTOCK_TESTS_TENSOR_SERVICE_DEVICE_LOOPBACK_H_

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tensor_service/client.h"
#include "tensor_service/codec.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/direct_receive.h"
#include "tensor_service/rendezvous_service.h"
#include "tensor_service/service.h"
#include "tensor_service/status.h"
#include "tensor_service/store.h"
#include "tests/tensor_service/device_messages.h"
#include "tests/tensor_service/fake_device.h"
#include "tests/tensor_service/random_bundle.h"

namespace penstock::tensor {

// Records the calls to it, and receives nothing into destinations.
class Listener final : public DirectReceiver {
 public:
  struct Call {
    std::vector<ReceiveRange> ranges;
    bool anywhere;
  };

  std::shared_ptr<PostedRanges> Post(const std::vector<ReceiveRange>& ranges,
                                     std::shared_ptr<const void> owner,
                                     bool often, bool anywhere) override {
    calls.push_back({ranges, anywhere});
    return std::make_shared<Nothing>();
  }
  void AcceptAt(absl::string_view path_prefix) override {
    accepted.insert(std::string(path_prefix));
  }

  bool Accepts(absl::string_view path) const {
    return std::any_of(accepted.begin(), accepted.end(), [&](const auto& p) {
      return absl::StartsWith(path, p);
    });
  }

  std::vector<Call> calls;
  std::set<std::string> accepted;

 private:
  class Nothing final : public PostedRanges {
   public:
    void AttachTo(grpc::ClientContext*) const override {}
    bool in_use() const override { return false; }
  };
};

class DeviceLoopback : public testing::TestWithParam<DeviceTensors> {
 protected:
  DeviceLoopback() {
    SetDeviceMemory(&devices_);
    SetDirectReceiver(&listener_);
    devices_.LetLend();
    tensors_ = MakeTensorService(&store_, GetParam());
    table_service_ = MakeRendezvousService(&table_, GetParam());
    grpc::ServerBuilder builder;
    AllowUnlimitedMessages(&builder);
    builder.RegisterService(tensors_.get());
    builder.RegisterService(table_service_.get());
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel(UnlimitedMessages());
    client_ = std::make_unique<TensorClient>(channel_);
  }
  ~DeviceLoopback() override {
    table_.CancelAll(absl::UnavailableError("the test ends")).IgnoreError();
    client_.reset();
    channel_.reset();
    server_->Shutdown();
    server_->Wait();
    SetDirectReceiver(nullptr);
    store_.Delete(Names(store_.All()));
    SetDeviceMemory(nullptr);
    EXPECT_EQ(devices_.allocations(), 0u);
  }

  static std::vector<std::string> Names(const Bundle& bundle) {
    std::vector<std::string> names;
    for (const NamedTensor& named : bundle.tensors) {
      names.push_back(named.name);
    }
    return names;
  }
  Bundle Here(size_t max_bytes = 1 << 20) {
    return RandomBundle(&random_, max_bytes, HeapAllocator(), HeapAllocator());
  }
  // Returns a tensor that is large enough to be lent.
  Tensor Long() {
    Tensor tensor = *Tensor::Allocate(DType::kUint8, {100000});
    for (int i = 0; i < 100000; ++i) {
      tensor.buffer()->mutable_data()[i] = static_cast<char>(random_());
    }
    return tensor;
  }
  Bundle There(Bundle bundle) {
    const Device devices[] = {Device(), kFirst, kSecond};
    for (NamedTensor& named : bundle.tensors) {
      named.tensor = *named.tensor.ToDevice(devices[random_() % 3]);
    }
    return bundle;
  }
  Tensor Place(const Tensor& like, const Device& device) {
    if (device.is_host()) return *Tensor::Allocate(like.dtype(), like.shape());
    return *Tensor::FromBuffer(like.dtype(), like.shape(),
                               *devices_.Allocate(device, like.byte_size()));
  }
  std::vector<Destination> PlacesFor(const Bundle& bundle) {
    const Device devices[] = {Device(), kFirst, kSecond};
    std::vector<Destination> places;
    for (const NamedTensor& named : bundle.tensors) {
      const size_t where = random_() % 4;
      if (where == 3) continue;
      places.push_back({named.name, Place(named.tensor, devices[where])});
    }
    return places;
  }
  // Returns the device on which the peer holds a tensor that was sent as
  // `sent`.
  static Device KeptAt(const Tensor& sent) {
    return GetParam() == DeviceTensors::kKeep &&
                   sent.byte_size() >= kLendAtLeast
               ? sent.device()
               : Device();
  }
  static void ExpectSame(const Bundle& got, const Bundle& sent) {
    ASSERT_EQ(Names(got), Names(sent));
    for (size_t i = 0; i < sent.tensors.size(); ++i) {
      const auto here = got.tensors[i].tensor.ToHost();
      ASSERT_TRUE(here.ok()) << here.status();
      EXPECT_EQ(here->dtype(), sent.tensors[i].tensor.dtype());
      EXPECT_EQ(here->shape(), sent.tensors[i].tensor.shape());
      EXPECT_EQ(here->bytes(), sent.tensors[i].tensor.bytes());
    }
  }

  const unsigned seed_ = std::random_device()();
  testing::ScopedTrace trace_{__FILE__, __LINE__, absl::StrCat("seed ", seed_)};
  std::mt19937 random_{seed_};
  FakeDevices devices_{2};
  Listener listener_;
  TensorStore store_{size_t{1} << 30};
  Rendezvous table_;
  std::unique_ptr<grpc::Service> tensors_;
  std::unique_ptr<grpc::Service> table_service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TensorClient> client_;
};

inline std::string NameOfOption(
    const testing::TestParamInfo<DeviceTensors>& info) {
  return info.param == DeviceTensors::kKeep ? "Keep" : "ToHost";
}

}  // namespace penstock::tensor

#endif  // PENSTOCK_TESTS_TENSOR_SERVICE_DEVICE_LOOPBACK_H_
