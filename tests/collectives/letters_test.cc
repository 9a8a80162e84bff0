// Tests messages between two ranks, in each kind of group.

#include <array>
#include <cstdint>
#include <functional>
#include <future>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "collectives/group.h"
#include "collectives/host/group.h"
#include "collectives/net/group.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/host/ranks.h"
#include "tests/collectives/net/ranks.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

// Runs a function for each of two ranks.
struct Kind {
  std::string name;
  std::function<void(const std::function<void(Group*)>&)> run;
};

std::vector<Kind> Kinds() {
  const auto over = [](std::vector<Fabric> fabrics) {
    return [=](const std::function<void(Group*)>& run) {
      RunRanks(OpenTeam(2, Over(fabrics)), NetGroupOptions(), run);
    };
  };
  return {{"host",
           [](const std::function<void(Group*)>& run) {
             HostGroupOptions options;
             options.ranks = 2;
             RunRanks(options, run);
           }},
          {"tcp", over({Fabric::kTcp})},
          {"shm", over({Fabric::kShm, Fabric::kTcp})}};
}

class Letters : public testing::TestWithParam<Kind> {};

TEST_P(Letters, MessagesOfATagComeInOrderAndTagsInAnyOrder) {
  GetParam().run([](Group* group) {
    // Sends a message that is larger than any buffer. The receiver asks for a
    // later message first.
    std::vector<int32_t> large(1'000'000);
    std::iota(large.begin(), large.end(), 0);
    if (group->rank() == 0) {
      std::thread other([&] {
        EXPECT_EQ(group->Send(DType::kInt32, large.data(), 1'000'000, 1, 7),
                  absl::OkStatus());
      });
      for (int16_t i = 0; i < 100; ++i) {
        EXPECT_EQ(group->Send(DType::kInt16, &i, 1, 1, 8), absl::OkStatus());
      }
      EXPECT_EQ(group->Send(DType::kInt8, nullptr, 0, 1, 9), absl::OkStatus());
      other.join();
    } else {
      EXPECT_EQ(group->Receive(DType::kInt8, nullptr, 0, 0, 9),
                absl::OkStatus());
      for (int16_t i = 0; i < 100; ++i) {
        int16_t got = -1;
        EXPECT_EQ(group->Receive(DType::kInt16, &got, 1, 0, 8),
                  absl::OkStatus());
        EXPECT_EQ(got, i);
      }
      std::vector<int32_t> got(1'000'000);
      EXPECT_EQ(group->Receive(DType::kInt32, got.data(), 1'000'000, 0, 7),
                absl::OkStatus());
      EXPECT_TRUE(got == large);
    }
    EXPECT_TRUE(group->Barrier().ok());
  });
}

// Sends and receives on four threads, while both ranks reduce.
TEST_P(Letters, MessagesRunConcurrentlyWithOperations) {
  GetParam().run([](Group* group) {
    const int other = 1 - group->rank();
    std::vector<std::thread> threads;
    for (uint32_t tag = 0; tag < 4; ++tag) {
      threads.emplace_back([&, tag] {
        for (int64_t i = 0; i < 50; ++i) {
          const int64_t mine = group->rank() * 1000 + tag * 100 + i;
          int64_t theirs = -1;
          ASSERT_EQ(group->Send(DType::kInt64, &mine, 1, other, tag),
                    absl::OkStatus());
          ASSERT_EQ(group->Receive(DType::kInt64, &theirs, 1, other, tag),
                    absl::OkStatus());
          ASSERT_EQ(theirs, other * 1000 + tag * 100 + i);
        }
      });
    }
    for (int round = 0; round < 50; ++round) {
      int32_t value = 1;
      ASSERT_TRUE(
          group->AllReduce(ReduceOp::kSum, DType::kInt32, &value, &value, 1)
              .ok());
      ASSERT_EQ(value, 2);
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST_P(Letters, AMessageOfAnotherTypeNamesBothRanks) {
  std::promise<void> knows;
  GetParam().run([&](Group* group) {
    std::array<float, 4> data = {};
    if (group->rank() == 0) {
      // The receiver's report may come before Send() returns.
      const absl::Status sent = group->Send(DType::kF32, data.data(), 4, 1, 5);
      EXPECT_TRUE(sent.ok() || absl::IsInvalidArgument(sent)) << sent;
      knows.get_future().wait();
      return;
    }
    const absl::Status status =
        group->Receive(DType::kF64, data.data(), 2, 0, 5);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Text(status),
              "rank 0 sends 4 f32 with tag 5, rank 1 receives 2 f64");
    EXPECT_EQ(group->Barrier(), status);
    knows.set_value();
  });
}

TEST_P(Letters, AMessageToOrFromTheOwnRankIsRefused) {
  GetParam().run([](Group* group) {
    EXPECT_EQ(Text(group->Send(DType::kF32, nullptr, 0, group->rank(), 0)),
              absl::StrCat("the other rank is ", group->rank(),
                           ", expected 0 to 1 without ", group->rank()));
    EXPECT_FALSE(group->Receive(DType::kF32, nullptr, 0, 2, 0).ok());
    EXPECT_FALSE(
        group->Receive(DType::kF32, nullptr, -1, 1 - group->rank(), 0).ok());
  });
}

TEST_P(Letters, AReceiverLearnsThatTheSenderHasLeft) {
  GetParam().run([](Group* group) {
    int8_t value = 3;
    if (group->rank() == 0) {
      EXPECT_TRUE(group->Send(DType::kInt8, &value, 1, 1, 1).ok());
      return;
    }
    value = 0;
    EXPECT_EQ(group->Receive(DType::kInt8, &value, 1, 0, 1), absl::OkStatus());
    EXPECT_EQ(value, 3);
    const absl::Status status = group->Receive(DType::kInt8, &value, 1, 0, 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(Text(status), "rank 0 has left the group");
  });
}

// Tests that empty messages count, and that received messages do not.
TEST(HostLetters, KeptMessagesAreBounded) {
  constexpr int kMost = 100;
  HostGroupOptions options;
  options.ranks = 2;
  options.kept_bytes = kMost * 512;
  RunRanks(options, [](Group* group) {
    const auto exchange = [&](uint32_t tag) {
      return group->rank() == 0
                 ? group->Send(DType::kInt8, nullptr, 0, 1, tag)
                 : group->Receive(DType::kInt8, nullptr, 0, 0, tag);
    };
    const auto exchange_all = [&](uint32_t tag) {
      for (int i = 0; i < kMost; ++i)
        ASSERT_EQ(exchange(tag), absl::OkStatus());
    };
    for (int round = 0; round < 2; ++round) {
      if (group->rank() == 0) exchange_all(1);
      ASSERT_EQ(exchange(2), absl::OkStatus());
      if (group->rank() == 1) exchange_all(1);
    }
    if (group->rank() == 0) {
      exchange_all(1);
      (void)exchange(1);
      (void)exchange(2);
      (void)group->Barrier();
      return;
    }
    const absl::Status status = exchange(2);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(Text(status),
              "rank 1 cannot keep 0 bytes of rank 0 with tag 1, which nobody "
              "receives: too many are kept");
  });
}

TEST_P(Letters, ALargeMessageWasSentIfTheReceiverLeavesAtOnce) {
  for (int round = 0; round < 20; ++round) {
    GetParam().run([](Group* group) {
      std::vector<int8_t> data(100'000);
      EXPECT_EQ(group->rank() == 0
                    ? group->Send(DType::kInt8, data.data(), 100'000, 1, 1)
                    : group->Receive(DType::kInt8, data.data(), 100'000, 0, 1),
                absl::OkStatus());
    });
  }
}

// Sends more messages than the receiver buffers. The receiver first asks for a
// message with another tag.
TEST_P(Letters, ManySmallMessagesWaitForTheirReceiver) {
  GetParam().run([](Group* group) {
    constexpr int kMessages = 400;
    std::vector<int32_t> data(64 * 1024 / sizeof(int32_t));
    const auto count = static_cast<int64_t>(data.size());
    if (group->rank() == 0) {
      std::thread other([&] {
        int8_t value = 5;
        EXPECT_EQ(group->Send(DType::kInt8, &value, 1, 1, 2), absl::OkStatus());
      });
      for (data[0] = 0; data[0] < kMessages; ++data[0]) {
        ASSERT_EQ(group->Send(DType::kInt32, data.data(), count, 1, 1),
                  absl::OkStatus());
      }
      other.join();
      return;
    }
    int8_t value = 0;
    EXPECT_EQ(group->Receive(DType::kInt8, &value, 1, 0, 2), absl::OkStatus());
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_EQ(group->Receive(DType::kInt32, data.data(), count, 0, 1),
                absl::OkStatus());
      ASSERT_EQ(data[0], i);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Of, Letters, testing::ValuesIn(Kinds()),
                         [](const testing::TestParamInfo<Kind>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace penstock::collectives
