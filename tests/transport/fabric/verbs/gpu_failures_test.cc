// Makes each library call fail once, at each of its calls, while messages in
// GPU memory pass between two ends.

#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/memory/destinations.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr size_t kSize = 100 * 1000;

struct Injection {
  const char* name;
  Call call;
  int error_number;
  // True if the connection survives the failure.
  bool goes_on = false;
  // True if the call destroys an object. After a failure the object still
  // exists, so the test cannot count objects.
  bool leaks = false;
};

// Two ends whose device reaches GPU memory in both ways, or only by dmabuf.
class GpuEnds : public Ends {
 public:
  GpuEnds(const memory::FakeDeviceAccess* gpu, bool has_peermem)
      : Ends(DeviceOf(gpu, has_peermem), Small()) {}

 private:
  static DeviceOptions DeviceOf(const memory::FakeDeviceAccess* gpu,
                                bool has_peermem) {
    DeviceOptions device;
    if (!has_peermem) return device;
    device.peer_memory = [gpu](const void* address, size_t size) {
      return gpu->Backing({static_cast<const uint8_t*>(address), size});
    };
    return device;
  }
  static Options Small() {
    Options options;
    options.gpu_alone_bytes = memory::kMinDeviceBytes;
    return options;
  }
};

class Talker {
 public:
  Talker(Ends* ends, memory::FakeDeviceAccess* gpu) : ends_(ends), gpu_(gpu) {}

  // Passes kMessages messages. Each fails with an error, or its bytes arrive.
  // Returns the number of messages that arrived.
  static constexpr int kMessages = 3;
  int Talk() {
    int came = 0;
    for (int i = 0; i < kMessages && !is_over(); ++i) {
      const std::string text(kSize, static_cast<char>('a' + i));
      const memory::Bytes into = gpu_->Put(std::string(kSize, '.'));
      if (Pass(memory::Payload(gpu_->Put(text)), text, into)) ++came;
    }
    return came;
  }
  bool is_over() const {
    return !ends_->client.events.broken.empty() ||
           !ends_->server.events.broken.empty();
  }

 private:
  bool Pass(const memory::Payload& payload, const std::string& text,
            const memory::Bytes& into) {
    auto* const data = const_cast<uint8_t*>(into.data);
    const auto exposure = ends_->server->Expose(payload, 1);
    if (!exposure.ok()) return false;
    bool came = false;
    const auto prepared = ends_->client->PrepareToRead({data, into.size, gpu_});
    if (prepared != nullptr) {
      // Allows events within the call, because a dead end answers there.
      ends_->client.events.within_read = true;
      ends_->client->Read(exposure->region[0], 0, {data, kSize}, ++cookie_);
      ends_->client.events.within_read = false;
      ends_->Exchange();
      came = ends_->client.events.Succeeded(cookie_);
      EXPECT_TRUE(!came || gpu_->Get(into.span()) == text);
    } else {
      const std::string got = ends_->ReadAll(&ends_->client, exposure->region);
      came = !got.empty();
      EXPECT_TRUE(!came || got == text);
    }
    ends_->server->Withdraw(exposure->region);
    ends_->Exchange();
    return came;
  }

  Ends* const ends_;
  memory::FakeDeviceAccess* const gpu_;
  uint64_t cookie_ = 0;
};

class GpuFailure : public testing::TestWithParam<Injection> {
 protected:
  // Runs the scene again and again. Run n makes the nth call of this kind fail.
  // Returns the number of calls in a run without a failure.
  static int FailEachTime(const Injection& injection, bool has_peermem);
};

int GpuFailure::FailEachTime(const Injection& injection, bool has_peermem) {
  constexpr int kMost = 400;
  for (int after = 0; after < kMost; ++after) {
    SCOPED_TRACE(absl::StrCat("failure after ", after));
    memory::FakeDeviceAccess gpu;
    GpuEnds ends(&gpu, has_peermem);
    if (injection.leaks) ends.Forgive();
    EXPECT_TRUE(ends.Connect().ok());
    ends.api->FailNext(injection.call, injection.error_number, after);
    Talker talker(&ends, &gpu);
    const int passed = talker.Talk();
    if (injection.goes_on) {
      EXPECT_FALSE(talker.is_over());
      EXPECT_EQ(passed, Talker::kMessages);
    }
    if (talker.is_over()) {
      EXPECT_TRUE(ends.ExchangeUntil([&] {
        return !ends.client.events.broken.empty() &&
               !ends.server.events.broken.empty();
      }));
      for (const End* end : {&ends.client, &ends.server}) {
        EXPECT_FALSE(end->events.broken[0].message().empty());
      }
    }
    const bool came = ends.api->failures_to_come() == 0;
    ends.Close();
    if (!came || HasFailure()) return after;
    // Connects again. An earlier failure must not prevent this.
    EXPECT_TRUE(ends.Connect().ok());
    EXPECT_EQ(Talker(&ends, &gpu).Talk(), Talker::kMessages);
    if (HasFailure()) return after;
  }
  ADD_FAILURE() << "not all of its times were tried";
  return kMost;
}

TEST_P(GpuFailure, LosesAtMostTheConnectionAndLeavesNothingBehind) {
  int made = FailEachTime(GetParam(), /*has_peermem=*/false);
  if (HasFailure()) return;
  made += FailEachTime(GetParam(), /*has_peermem=*/true);
  EXPECT_GT(made, 0) << "the call was never made";
}

const Injection kInjections[] = {
    {"RegDmabufMrNoMemory", Call::kRegDmabufMr, ENOMEM, true},
    {"RegDmabufMrUnknown", Call::kRegDmabufMr, EOPNOTSUPP, true},
    {"RegDmabufMrInvalid", Call::kRegDmabufMr, EINVAL, true},
    {"RegDmabufMrBadDescriptor", Call::kRegDmabufMr, EBADF, true},
    {"RegMr", Call::kRegMr, ENOMEM, true},
    {"QueryPort", Call::kQueryPort, EIO, true},
    {"QueryGidTable", Call::kQueryGidTable, EOPNOTSUPP, true},
    {"AllocMw", Call::kAllocMw, ENOMEM},
    {"CreateCq", Call::kCreateCq, ENOMEM, true},
    {"IbvCreateQp", Call::kIbvCreateQp, ENOMEM, true},
    {"ModifyQp", Call::kModifyQp, EINVAL, true},
    {"PollCq", Call::kPollCq, EIO},
    {"PostSend", Call::kPostSend, ENOMEM},
    {"DeregMr", Call::kDeregMr, EBUSY, false, true},
    {"DeallocMw", Call::kDeallocMw, EBUSY, false, true},
    {"IbvDestroyQp", Call::kIbvDestroyQp, EBUSY, false, true},
    {"DestroyCq", Call::kDestroyCq, EBUSY, false, true},
};

INSTANTIATE_TEST_SUITE_P(Every, GpuFailure, testing::ValuesIn(kInjections),
                         [](const testing::TestParamInfo<Injection>& info) {
                           return std::string(info.param.name);
                         });

// Makes the device end a request with an error. If the request belongs to a
// trial, the connection must survive. Otherwise the connection may end. The
// next connection must work.
void FailRequest(ibv_wr_opcode opcode, int good, bool has_peermem) {
  memory::FakeDeviceAccess gpu;
  GpuEnds ends(&gpu, has_peermem);
  ASSERT_TRUE(ends.Connect().ok());
  for (int i = 0; i < good; ++i) {
    ends.api->CompleteNext(opcode, IBV_WC_SUCCESS);
  }
  ends.api->CompleteNext(opcode, IBV_WC_GENERAL_ERR);
  Talker talker(&ends, &gpu);
  const int passed = talker.Talk();
  EXPECT_EQ(talker.is_over(),
            passed < Talker::kMessages || !ends.server.events.broken.empty());
  // Makes a second connection if necessary: the failure may happen only in the
  // first connection.
  int later = 0;
  for (int i = 0; i < 2 && later < Talker::kMessages; ++i) {
    ends.Close();
    ASSERT_TRUE(ends.Connect().ok());
    later = Talker(&ends, &gpu).Talk();
  }
  EXPECT_EQ(later, Talker::kMessages);
}

TEST(GpuFailureTest, RequestsThatFail) {
  for (const bool has_peermem : {false, true}) {
    for (const ibv_wr_opcode opcode :
         {IBV_WR_BIND_MW, IBV_WR_RDMA_READ, IBV_WR_LOCAL_INV}) {
      for (int good = 0; good < 6; ++good) {
        SCOPED_TRACE(absl::StrCat("opcode ", opcode, " after ", good,
                                  ", peermem ", has_peermem));
        FailRequest(opcode, good, has_peermem);
      }
    }
  }
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
