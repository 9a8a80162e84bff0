// Runs operations on the memory of a device that the CPU cannot touch.

#include "collectives/operand_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "collectives/net/group.h"
#include "collectives/reduction/reduction.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/net/ranks.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

constexpr int kRanks = 3;
// The numbers of elements in a block. One block is sent in one part, the other
// in several.
constexpr int64_t kCounts[] = {7, 100'000};
constexpr int64_t kMost = kRanks * 100'000;

// A device with two arrays of kMost floats. Programs have addresses that the
// CPU cannot access. The device itself has another mapping of the same pages.
class Device final : public OperandMemory {
 public:
  Device() {
    const int fd = memfd_create("device", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, kBytes), 0);
    seen_ = Map(fd, PROT_NONE);
    real_ = Map(fd, PROT_READ | PROT_WRITE);
    close(fd);
  }
  ~Device() override {
    munmap(seen_, kBytes);
    munmap(real_, kBytes);
  }

  float* in() { return reinterpret_cast<float*>(seen_); }
  float* out() { return in() + kMost; }
  float* Real(const void* seen) const {
    return reinterpret_cast<float*>(
        real_ + (static_cast<const uint8_t*>(seen) - seen_));
  }

  absl::StatusOr<bool> Has(const void* address) const override {
    const auto* const at = static_cast<const uint8_t*>(address);
    const bool has = at >= seen_ && at < seen_ + kBytes;
    if (has && is_lost) return absl::UnavailableError("the device is lost");
    return has;
  }
  absl::Status CopyToHost(const void* from, void* to, size_t bytes) override {
    return HostMemory()->Copy(Real(from), to, bytes);
  }
  absl::Status CopyFromHost(const void* from, void* to, size_t bytes) override {
    return HostMemory()->Copy(from, Real(to), bytes);
  }
  absl::Status Copy(const void* from, void* to, size_t bytes) override {
    return HostMemory()->Copy(Real(from), Real(to), bytes);
  }
  absl::Status Reduce(ReduceOp op, DType dtype, const void* received,
                      bool is_right, void* data, size_t count) override {
    if (op == ReduceOp::kProduct && !has_product) {
      return absl::UnimplementedError("no product");
    }
    return HostMemory()->Reduce(op, dtype, received, is_right, Real(data),
                                count);
  }
  absl::Status Divide(DType dtype, void* data, int by, size_t count) override {
    return HostMemory()->Divide(dtype, Real(data), by, count);
  }

  bool has_product = true;
  bool is_lost = false;

 private:
  static constexpr size_t kBytes = 2 * kMost * sizeof(float);

  static uint8_t* Map(int fd, int rights) {
    void* const memory = mmap(nullptr, kBytes, rights, MAP_SHARED, fd, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return static_cast<uint8_t*>(memory);
  }

  uint8_t* seen_ = nullptr;
  uint8_t* real_ = nullptr;
};

// Runs one operation on `count` elements in each block.
using Run = std::function<absl::Status(NetGroup* group, const float* in,
                                       float* out, int64_t count)>;

const std::vector<Run>& Operations() {
  constexpr DType kType = DType::kF32;
  static const auto* const all = new std::vector<Run>{
      [](NetGroup* g, const float* in, float* out, int64_t n) {
        return g->AllReduce(ReduceOp::kAverage, kType, in, out, kRanks * n);
      },
      [](NetGroup* g, const float* in, float* out, int64_t n) {
        return g->Reduce(ReduceOp::kSum, kType, in, out, kRanks * n, 1);
      },
      [](NetGroup* g, const float* in, float* out, int64_t n) {
        return g->ReduceScatter(ReduceOp::kAverage, kType, in, out, n);
      },
      [](NetGroup* g, const float* in, float* out, int64_t n) {
        return g->AllGather(kType, in, out, n);
      },
      [](NetGroup* g, const float* in, float* out, int64_t n) {
        return g->Gather(kType, in, out, n, 2);
      },
      [](NetGroup* g, const float* in, float* out, int64_t n) {
        return g->Scatter(kType, in, out, n, 0);
      },
      [](NetGroup* g, const float*, float* out, int64_t n) {
        return g->Broadcast(kType, out, kRanks * n, 1);
      },
      [](NetGroup* g, const float* in, float* out, int64_t n) {
        return g->AllToAll(kType, in, out, n);
      },
  };
  return *all;
}

// Expects the same results as from an operation on the host's memory.
void Compare(NetGroup* group, Device* device, const Run& run, int64_t count) {
  std::vector<float> in(kMost);
  std::vector<float> out(kMost);
  std::minstd_rand random(group->rank() + 1);
  for (float& value : in) value = 1.0F / static_cast<float>(random());
  for (float& value : out) value = 1.0F / static_cast<float>(random());
  const size_t bytes = kMost * sizeof(float);
  std::memcpy(device->Real(device->in()), in.data(), bytes);
  std::memcpy(device->Real(device->out()), out.data(), bytes);
  absl::Status status = run(group, in.data(), out.data(), count);
  ASSERT_TRUE(status.ok()) << status;
  status = run(group, device->in(), device->out(), count);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(std::memcmp(device->Real(device->out()), out.data(), bytes), 0);
}

// Runs `run` for each rank of a group, whose ranks have a device each.
void RunWithDevices(const std::function<void(NetGroup*, Device*)>& run) {
  std::vector<Device> devices(kRanks);
  NetGroupOptions options;
  for (Device& device : devices) options.memories.push_back(&device);
  Meet end(kRanks);
  RunRanks(OpenTeam(kRanks, Over({Fabric::kTcp})), options,
           [&](NetGroup* group) {
             run(group, &devices[group->rank()]);
             end.Wait();
           });
}

TEST(OperandMemory, OfADeviceIsReducedOnTheDevice) {
  RunWithDevices([](NetGroup* group, Device* device) {
    for (size_t i = 0; i < Operations().size(); ++i) {
      for (const int64_t count : kCounts) {
        SCOPED_TRACE(testing::Message() << "operation " << i << ", " << count);
        Compare(group, device, Operations()[i], count);
      }
    }
  });
}

// Tests that each rank learns of the failure of one rank's device.
TEST(OperandMemory, AnErrorOfADeviceEndsTheGroup) {
  RunWithDevices([](NetGroup* group, Device* device) {
    device->has_product = group->rank() != 1;
    const absl::Status status = group->AllReduce(
        ReduceOp::kProduct, DType::kF32, device->in(), device->in(), kMost);
    EXPECT_NE(status.message().find("no product"), std::string::npos) << status;
  });
}

TEST(OperandMemory, ALostDeviceEndsTheGroup) {
  RunWithDevices([](NetGroup* group, Device* device) {
    device->is_lost = group->rank() == 1;
    const absl::Status status = group->AllReduce(
        ReduceOp::kSum, DType::kF32, device->in(), device->in(), kMost);
    EXPECT_NE(status.message().find("the device is lost"), std::string::npos)
        << status;
  });
}

TEST(OperandMemory, WrongUsesAreRefused) {
  RunWithDevices([](NetGroup* group, Device* device) {
    float value = 0;
    EXPECT_EQ(
        group->AllReduce(ReduceOp::kSum, DType::kF32, &value, device->out(), 1)
            .message(),
        "input and output are in memories of different kinds");
    EXPECT_EQ(
        group->Send(DType::kF32, device->in(), 1, (group->rank() + 1) % 3, 0)
            .message(),
        "messages with tags are of the host's memory: copy the elements "
        "there");
    EXPECT_TRUE(group->Barrier().ok());
  });
}

}  // namespace
}  // namespace penstock::collectives
