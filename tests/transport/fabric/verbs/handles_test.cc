// Tests that owners destroy their objects once and in order, and that a failed
// creation gives the reason.

#include "transport/fabric/verbs/handles.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

class HandlesTest : public testing::Test {
 protected:
  HandlesTest() : device_(verbs_.AddDevice({"mlx5_0", {"10.0.0.1"}})) {
    EXPECT_EQ(ftruncate(dmabuf_, 4096), 0);
  }
  ~HandlesTest() override {
    pd_.Reset();
    verbs_.DestroyEventChannel(events_);
    close(dmabuf_);
    EXPECT_EQ(verbs_.leaks(), std::vector<std::string>());
  }

  FakeVerbs verbs_;
  ibv_context* const device_;
  rdma_event_channel* const events_ = verbs_.CreateEventChannel();
  ProtectionDomain pd_ = *AllocPd(&verbs_, device_);
  char memory_[64] = {};
  const int dmabuf_ = memfd_create("dmabuf", MFD_CLOEXEC);
};

struct Creation {
  Call call;
  // The first words of the error text.
  const char* what;
  std::function<absl::Status()> create;
};

TEST_F(HandlesTest, FailureGivesCodeOperationDeviceAndRemedy) {
  const std::vector<Creation> creations = {
      {Call::kAllocPd, "allocate a protection domain on mlx5_0",
       [&] { return AllocPd(&verbs_, device_).status(); }},
      {Call::kRegMr, "register memory on mlx5_0",
       [&] {
         return RegMr(&verbs_, pd_.get(), memory_, sizeof memory_, 0).status();
       }},
      {Call::kRegDmabufMr, "register a dmabuf on mlx5_0",
       [&] {
         return RegDmabufMr(&verbs_, pd_.get(), 0, 4096, 0, dmabuf_, 0)
             .status();
       }},
      {Call::kAllocMw, "allocate a memory window on mlx5_0",
       [&] { return AllocWindow(&verbs_, pd_.get()).status(); }},
      {Call::kCreateCompChannel, "create a completion channel on mlx5_0",
       [&] { return CreateChannel(&verbs_, device_).status(); }},
      {Call::kCreateCq, "create a completion queue on mlx5_0",
       [&] { return CreateCq(&verbs_, device_, 1, nullptr).status(); }},
      {Call::kCreateSrq, "create a shared receive queue on mlx5_0",
       [&] { return CreateSrq(&verbs_, pd_.get(), 1).status(); }},
      {Call::kCreateId, "create a connection identifier",
       [&] { return CreateId(&verbs_, events_).status(); }},
  };
  for (const Creation& creation : creations) {
    SCOPED_TRACE(creation.what);
    verbs_.FailNext(creation.call, ENOMEM);
    const absl::Status full = creation.create();
    EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(absl::StartsWith(full.message(), creation.what)) << full;
    EXPECT_TRUE(absl::StrContains(full.message(), "ulimit -l")) << full;
    verbs_.FailNext(creation.call, EACCES);
    const absl::Status refused = creation.create();
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_TRUE(absl::StrContains(refused.message(), "/dev/infiniband"));
    verbs_.FailNext(creation.call, EINVAL);
    EXPECT_EQ(creation.create().code(), absl::StatusCode::kInternal);
    EXPECT_TRUE(creation.create().ok()) << "the failures are used up";
  }
}

// Tests the errors of libraries, kernels and drivers that do not know the call.
TEST_F(HandlesTest, DmabufThatIsUnknownIsUnimplemented) {
  for (const int error_number : {EOPNOTSUPP, EPROTONOSUPPORT, ENOSYS, ENOTTY}) {
    verbs_.FailNext(Call::kRegDmabufMr, error_number);
    const absl::Status status =
        RegDmabufMr(&verbs_, pd_.get(), 0, 4096, 0, dmabuf_, 0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(status.message(), "mlx5_0 registers no dmabuf");
  }
}

TEST_F(HandlesTest, DmabufHasTheAddressesThatItIsGiven) {
  constexpr uint64_t kIova = 0x7000001234;
  const MemoryRegion region =
      *RegDmabufMr(&verbs_, pd_.get(), 0x234, 100, kIova, dmabuf_, 0);
  EXPECT_EQ(reinterpret_cast<uint64_t>(region->addr), kIova);
  EXPECT_EQ(region->length, 100u);
}

TEST_F(HandlesTest, BudgetOfLockedMemoryIsRespected) {
  ibv_context* const small = [&] {
    DeviceOptions options;
    options.name = "small";
    options.memlock_bytes = 48;
    return verbs_.AddDevice(options);
  }();
  const ProtectionDomain pd = *AllocPd(&verbs_, small);
  EXPECT_EQ(RegMr(&verbs_, pd.get(), memory_, 64, 0).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(RegMr(&verbs_, pd.get(), memory_, 48, 0).ok());
}

TEST_F(HandlesTest, MovedFromOwnsNothing) {
  ProtectionDomain first = *AllocPd(&verbs_, device_);
  ibv_pd* const object = first.get();
  ProtectionDomain second = std::move(first);
  EXPECT_EQ(second.get(), object);
  EXPECT_EQ(verbs_.counts().pds, 2);
  second.Reset();
  second.Reset();
  EXPECT_EQ(verbs_.counts().pds, 1) << "ended once";
}

TEST_F(HandlesTest, AssignedOverEndsAtTheLatestWithItsSource) {
  ProtectionDomain kept = *AllocPd(&verbs_, device_);
  ibv_pd* object = nullptr;
  {
    ProtectionDomain source = *AllocPd(&verbs_, device_);
    object = source.get();
    kept = std::move(source);
  }
  EXPECT_EQ(kept.get(), object);
  EXPECT_EQ(verbs_.counts().pds, 2);
}

TEST_F(HandlesTest, EmptyOneDoesNothing) {
  MemoryRegion region;
  region.Reset();
  EXPECT_FALSE(region);
}

struct Everything {
  ProtectionDomain pd;
  MemoryRegion region;
  MemoryWindow window;
  CompletionChannel channel;
  CompletionQueue queue;
  SharedReceiveQueue receives;
};

TEST_F(HandlesTest, MembersEndBackwards) {
  {
    Everything all;
    all.pd = *AllocPd(&verbs_, device_);
    all.region = *RegMr(&verbs_, all.pd.get(), memory_, sizeof memory_, 0);
    all.window = *AllocWindow(&verbs_, all.pd.get());
    all.channel = *CreateChannel(&verbs_, device_);
    all.queue = *CreateCq(&verbs_, device_, 4, all.channel.get());
    all.receives = *CreateSrq(&verbs_, all.pd.get(), 4);
    EXPECT_EQ(verbs_.counts().objects(), 8);
  }
  EXPECT_TRUE(verbs_.misuse().empty());
  EXPECT_EQ(verbs_.counts().objects(), 2) << "the fixture's";
}

TEST_F(HandlesTest, ChannelDoesNotBlock) {
  const CompletionChannel channel = *CreateChannel(&verbs_, device_);
  EXPECT_NE(fcntl(channel->fd, F_GETFL) & O_NONBLOCK, 0);
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  EXPECT_EQ(verbs_.GetCqEvent(channel.get(), &queue, &context), -1);
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
