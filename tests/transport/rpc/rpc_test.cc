// Tests calls that get answers.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "tests/transport/rpc/rpc_fixture.h"
#include "transport/base/steady_time.h"

namespace penstock {
namespace rpc {
namespace {

using RpcTest = RpcFixture;

TEST_P(RpcTest, AnswersComeBack) {
  ServeEcho();
  std::unique_ptr<Client> client = Connect();
  Request request = Named("echo");
  request.metadata = "meta";
  request.payload = Text("payload");
  const Result result = Call(client.get(), std::move(request));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->metadata, "echo meta");
  EXPECT_EQ(ToString(result->payload), "payload");
  EXPECT_EQ(client->DescribePath()->fabric,
            GetParam() == Fabric::kShm ? "shm" : "tcp");
  ASSERT_EQ(server_->Describe().size(), 1);
  EXPECT_EQ(server_->Describe()[0].path.fabric, client->DescribePath()->fabric);
}

TEST_P(RpcTest, WithoutPayloadTheMetadataComesBack) {
  ServeEcho();
  std::unique_ptr<Client> client = Connect();
  const Result result = Call(client.get(), Named("nothing"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->metadata, "nothing ");
  EXPECT_EQ(result->payload.size(), 0);
}

TEST_P(RpcTest, RandomPayloadsComeThrough) {
  ServeEcho();
  std::unique_ptr<Client> client = Connect();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  std::vector<std::string> sent;
  std::vector<Awaited<Result>> results;
  for (int i = 0; i < 200; ++i) {
    Request request = Named(absl::StrCat("m", i));
    std::string all;
    const int pieces = static_cast<int>(random() % 5);
    for (int j = 0; j < pieces; ++j) {
      const size_t size = random() % (size_t{1} << (random() % 21));
      const std::string piece(size, static_cast<char>(random()));
      all += piece;
      const memory::Payload payload = Text(piece);
      for (const memory::Bytes& bytes : payload.pieces()) {
        request.payload.Append(bytes);
      }
    }
    sent.push_back(std::move(all));
    results.push_back(Begin(client.get(), std::move(request)));
  }
  for (size_t i = 0; i < sent.size(); ++i) {
    absl::optional<Result> result = results[i].Get();
    ASSERT_TRUE(result.has_value());
    ASSERT_TRUE(result->ok()) << result->status();
    EXPECT_EQ((*result)->metadata, absl::StrCat("m", i, " "));
    EXPECT_TRUE(ToString((*result)->payload) == sent[i]) << i;
  }
}

TEST_P(RpcTest, ManyThreadsCallAtOnce) {
  ServeEcho();
  std::unique_ptr<Client> client = Connect();
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&client, &good, i] {
      for (int j = 0; j < 200; ++j) {
        Request request = Named("echo");
        request.payload = Text(std::string(1 + 997 * i * j % 70000, 'x'));
        const size_t size = request.payload.size();
        const Result result = Call(client.get(), std::move(request));
        if (result.ok() && result->payload.size() == size) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8 * 200);
}

TEST_P(RpcTest, HandlersStatusComesBack) {
  Serve([](const std::shared_ptr<IncomingCall>& call) {
    call->Respond(absl::AbortedError("step 7 was aborted"));
  });
  std::unique_ptr<Client> client = Connect();
  EXPECT_EQ(Call(client.get(), Named("any")).status(),
            absl::AbortedError("step 7 was aborted"));
}

TEST_P(RpcTest, AnswerMayComeLaterOnAnotherThread) {
  const Awaited<std::shared_ptr<IncomingCall>> incoming;
  Serve([incoming](std::shared_ptr<IncomingCall> call) {
    incoming.Set(std::move(call));
  });
  std::unique_ptr<Client> client = Connect();
  const Awaited<Result> first = Begin(client.get(), Named("first"));
  const Awaited<Result> second = Begin(client.get(), Named("second"));
  std::shared_ptr<IncomingCall> one = *incoming.Get();
  std::shared_ptr<IncomingCall> two = *incoming.Get();
  EXPECT_EQ(one->request().method, "first");
  two->Respond(Response{"2", Text(std::string(1 << 20, '2'))});
  EXPECT_EQ((*second.Get())->metadata, "2");
  one->Respond(Response{"1", {}});
  one->Respond(absl::InternalError("the second answer does not count"));
  EXPECT_EQ((*first.Get())->metadata, "1");
}

TEST_P(RpcTest, CallbacksMayCall) {
  ServeEcho();
  std::unique_ptr<Client> client = Connect();
  const Awaited<Result> last;
  std::function<void(int)> call = [&client, &call, last](int left) {
    client->Call(Named("again"), [&call, last, left](Result result) {
      if (left == 0 || !result.ok()) return last.Set(std::move(result));
      call(left - 1);
    });
  };
  call(1000);
  const absl::optional<Result> result = last.Get();
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->ok()) << result->status();
}

// Tests that the memory of a request is freed after the peer has received the
// request, and never under a lock. In this test, the memory's owner calls the
// client.
TEST_P(RpcTest, OwnersAreLetGoOfWithoutLocks) {
  ServeEcho();
  std::unique_ptr<Client> client = Connect();
  const Awaited<bool> gone;
  struct Owner {
    Client* client;
    Awaited<bool> gone;
    std::string bytes = std::string(1 << 20, 'x');
    ~Owner() {
      client->counters();  // this call takes the lock
      gone.Set(true);
    }
  };
  {
    auto owner = std::make_shared<Owner>(Owner{client.get(), gone});
    Request request = Named("any");
    request.payload = memory::Payload(
        memory::Bytes{reinterpret_cast<const uint8_t*>(owner->bytes.data()),
                      owner->bytes.size(), owner});
    owner = nullptr;
    EXPECT_TRUE(Call(client.get(), std::move(request)).ok());
  }
  EXPECT_TRUE(gone.Get().has_value());
}

// Tests details and metadata of a unary call's error.
TEST_P(RpcTest, ErrorCarriesMetadataAndDetails) {
  Serve([](const std::shared_ptr<IncomingCall>& call) {
    absl::Status status = absl::AbortedError("text");
    status.SetPayload("details", absl::Cord(std::string("\0\xff", 2)));
    status.SetPayload(kMetadataUrl, absl::Cord("trailing"));
    call->Respond(status);
  });
  const Result result = Call(Connect().get(), Named("any"));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(result.status().GetPayload("details"), std::string("\0\xff", 2));
  EXPECT_EQ(result.status().GetPayload(kMetadataUrl), "trailing");
}

// Tests that a sender gets its memory back without a later call. A deferred
// release would take a timer's 25 ms each time.
TEST_P(RpcTest, MessageIsReleasedImmediately) {
  const Awaited<absl::Time> released;
  Serve([released](std::shared_ptr<IncomingCall> call) {
    const std::shared_ptr<const std::string> owner(
        new std::string(100000, 'x'), [released](const std::string* text) {
          delete text;
          released.Set(base::SteadyNow());
        });
    const auto* const data = reinterpret_cast<const uint8_t*>(owner->data());
    call->Respond(Response{
        "", memory::Payload(memory::Bytes{data, owner->size(), owner})});
  });
  const std::unique_ptr<Client> client = Connect();
  absl::Duration least = absl::InfiniteDuration();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Call(client.get(), Named("large")).ok());
    const absl::Time answered = base::SteadyNow();
    const absl::optional<absl::Time> end = released.Get();
    ASSERT_TRUE(end.has_value());
    least = std::min(least, *end - answered);
  }
  EXPECT_LT(least, absl::Milliseconds(20));
}

INSTANTIATE_TEST_SUITE_P(All, RpcTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& info) {
                           return FabricName(info.param);
                         });

}  // namespace
}  // namespace rpc
}  // namespace penstock
