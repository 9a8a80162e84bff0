// Tests streams that follow random plans. A seed determines each stream's plan:
// the messages of both sides, the waits, and the end. Both sides must see
// exactly the plan, or a prefix of the plan if the stream is cancelled or has a
// deadline. Each callback must run once. Fast paths are lost during the test.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/rpc/rpc_fixture.h"
#include "tests/transport/rpc/stream_plan.h"
#include "transport/base/descriptors.h"
#include "transport/paths/path_relief.h"
#include "transport/rpc/waiter.h"

namespace penstock {
namespace rpc {
namespace {

using Message = absl::optional<memory::Payload>;

constexpr absl::Duration kPatience = absl::Seconds(20);

// Counts callbacks that have not run, and finds ones that run twice.
class Callbacks {
 public:
  template <typename Argument>
  std::function<void(Argument)> Once(std::function<void(Argument)> function) {
    ++open_;
    auto runs = std::make_shared<std::atomic<int>>(0);
    return [this, runs, function = std::move(function)](Argument argument) {
      if (++*runs > 1) ADD_FAILURE() << "a callback ran twice";
      function(std::move(argument));
      --open_;
    };
  }
  int open() const { return open_; }

 private:
  std::atomic<int> open_{0};
};

// The server's side of a stream. Runs in callbacks, one after another.
class ServerSide : public std::enable_shared_from_this<ServerSide> {
 public:
  ServerSide(std::shared_ptr<IncomingStream> stream, unsigned seed,
             Callbacks* callbacks)
      : plan_(seed), stream_(std::move(stream)), callbacks_(callbacks) {}

  void Begin() {
    if (plan_.has_metadata) stream_->SendMetadata(absl::StrCat(plan_.seed));
    Continue();
  }

 private:
  void Continue() {
    while (step_ < plan_.server.size()) {
      const Plan::ServerStep& step = plan_.server[step_++];
      if (step.reads) return Read();
      if (Write(step.write)) return;
    }
    if (plan_.ending == Plan::Ending::kFinish) {
      stream_->Finish({absl::Status(plan_.code, ""), plan_.trailing});
    }
    stream_ = nullptr;
  }
  void Read() {
    stream_->Read(callbacks_->Once<Message>(
        [self = shared_from_this()](const Message& message) {
          self->Check(message);
          self->Continue();
        }));
  }
  // Returns true if the next step waits for the report.
  bool Write(const Plan::Write& write) {
    stream_->Write(Text(plan_.Text('s', writes_++, write.size)),
                   callbacks_->Once<bool>(
                       [self = shared_from_this(), waits = write.waits](bool) {
                         if (waits) self->Continue();
                       }));
    return write.waits;
  }
  void Check(const Message& message) {
    const size_t index = reads_++;
    if (!message.has_value()) {
      EXPECT_TRUE(plan_.cut != Plan::Cut::kNone || index >= plan_.client.size())
          << plan_.seed;
      return;
    }
    if (index >= plan_.client.size()) {
      ADD_FAILURE() << plan_.seed << ": more messages than were sent";
    } else {
      EXPECT_TRUE(ToString(*message) ==
                  plan_.Text('c', index, plan_.client[index].size))
          << plan_.seed;
    }
  }

  const Plan plan_;
  std::shared_ptr<IncomingStream> stream_;
  Callbacks* const callbacks_;
  size_t step_ = 0;
  size_t reads_ = 0;
  size_t writes_ = 0;
};

// The client's side of a stream. The thread of Run() writes. Callbacks read.
class ClientSide : public std::enable_shared_from_this<ClientSide> {
 public:
  ClientSide(unsigned seed, Callbacks* callbacks)
      : plan_(seed), callbacks_(callbacks) {
    size_t index = 0;
    for (const Plan::ServerStep& step : plan_.server) {
      if (!step.reads) answers_.push_back({step.write.size, index++});
    }
  }

  void Run(Client* client) {
    Request request;
    request.method = "plan";
    request.metadata = absl::StrCat(plan_.seed);
    if (plan_.cut == Plan::Cut::kDeadline) request.timeout = plan_.timeout;
    const auto self = shared_from_this();
    stream_ = client->Open(
        std::move(request),
        [self](const std::string& metadata) { self->OnMetadata(metadata); },
        callbacks_->Once<End>([self](const End& end) { self->OnEnd(end); }));
    Read();
    WriteAll();
    WaitUntil([&] { return has_ended_ && has_read_all_; });
    stream_ = nullptr;
    Check();
  }

 private:
  void Read() {
    stream_->Read(callbacks_->Once<Message>(
        [self = shared_from_this()](const Message& message) {
          self->OnRead(message);
        }));
  }
  void WriteAll() {
    for (size_t i = 0; i < plan_.client.size(); ++i) {
      if (plan_.cut_after == i && Cut()) return;
      const bool is_last = plan_.marks_last && i + 1 == plan_.client.size();
      stream_->Write(Text(plan_.Text('c', i, plan_.client[i].size)),
                     callbacks_->Once<bool>([self = shared_from_this()](bool) {
                       self->Change([&] { ++self->reports_; });
                     }),
                     is_last);
      if (plan_.client[i].waits) {
        WaitUntil([&] { return reports_ == i + 1; });
      }
    }
    if (plan_.cut_after == plan_.client.size() && Cut()) return;
    stream_->HalfClose();
  }
  // Returns true if nothing may be written any more.
  bool Cut() {
    if (plan_.cut == Plan::Cut::kCancel) stream_->Cancel();
    if (plan_.cut != Plan::Cut::kDestroy) return false;
    // Destroys the stream under the lock. Reading is allowed until now, and no
    // callback may be using the stream.
    std::lock_guard<std::mutex> lock(mu_);
    is_destroyed_ = true;
    stream_ = nullptr;
    return true;
  }

  void OnMetadata(const std::string& metadata) {
    Change([&] {
      EXPECT_FALSE(has_metadata_ || has_ended_);
      has_metadata_ = true;
      EXPECT_EQ(metadata, plan_.has_metadata ? absl::StrCat(plan_.seed) : "");
    });
  }
  void OnRead(const Message& message) {
    Change([&] {
      if (!message.has_value()) {
        has_read_all_ = true;
        return;
      }
      EXPECT_TRUE(has_metadata_) << plan_.seed;
      if (read_ >= answers_.size()) {
        ADD_FAILURE() << plan_.seed << ": more answers than were sent";
        return;
      }
      const auto& answer = answers_[read_++];
      EXPECT_TRUE(ToString(*message) ==
                  plan_.Text('s', answer.second, answer.first))
          << plan_.seed;
      if (is_destroyed_) has_read_all_ = true;
      if (!is_destroyed_) Read();
    });
  }
  void OnEnd(const End& end) {
    Change([&] {
      has_ended_ = true;
      end_ = end;
    });
  }

  void Check() {
    std::lock_guard<std::mutex> lock(mu_);
    const absl::StatusCode expected = plan_.ending == Plan::Ending::kFinish
                                          ? plan_.code
                                          : absl::StatusCode::kInternal;
    if (end_.status.code() == expected) {
      if (plan_.ending == Plan::Ending::kFinish) {
        EXPECT_EQ(end_.metadata, plan_.trailing);
      }
      EXPECT_TRUE(is_destroyed_ || read_ == answers_.size())
          << plan_.seed << ": " << read_ << " of " << answers_.size();
      return;
    }
    EXPECT_NE(plan_.cut, Plan::Cut::kNone) << plan_.seed << end_.status;
    EXPECT_EQ(end_.status.code(), plan_.cut == Plan::Cut::kDeadline
                                      ? absl::StatusCode::kDeadlineExceeded
                                      : absl::StatusCode::kCancelled)
        << plan_.seed << end_.status;
  }

  template <typename Function>
  void Change(Function function) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      function();
    }
    waiter_.Notify();
  }
  template <typename Condition>
  void WaitUntil(Condition condition) {
    for (;;) {
      {
        std::lock_guard<std::mutex> lock(mu_);
        if (condition()) return;
      }
      ASSERT_TRUE(waiter_.Wait(kPatience)) << "seed " << plan_.seed;
    }
  }

  const Plan plan_;
  Callbacks* const callbacks_;
  std::vector<std::pair<size_t, size_t>> answers_;  // size, index
  std::unique_ptr<OutgoingStream> stream_;
  Waiter waiter_{progress::PollingMode::kAdaptive};
  std::mutex mu_;
  size_t reports_ = 0;
  size_t read_ = 0;
  bool is_destroyed_ = false;
  bool has_metadata_ = false;
  bool has_read_all_ = false;
  bool has_ended_ = false;
  End end_;
};

class StreamRandomTest
    : public testing::TestWithParam<std::tuple<Fabric, CallbackThread>> {
 protected:
  static Settings MakeSettings() {
    Settings settings;
    settings.fabrics = {Fabric::kTcp};
    if (std::get<0>(GetParam()) != Fabric::kTcp) {
      settings.fabrics.insert(settings.fabrics.begin(),
                              std::get<0>(GetParam()));
    }
    return settings;
  }
  void StartServer() {
    Server::Options options;
    options.address = "127.0.0.1:0";
    options.token = kToken;
    options.settings = MakeSettings();
    options.callbacks = std::get<1>(GetParam());
    auto server = Server::Start(
        options, nullptr, [this](std::shared_ptr<IncomingStream> stream) {
          unsigned seed = 0;
          EXPECT_TRUE(absl::SimpleAtoi(stream->request().metadata, &seed));
          std::make_shared<ServerSide>(std::move(stream), seed, &callbacks_)
              ->Begin();
        });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::unique_ptr<Client> Connect() const {
    Client::Options options;
    options.target = absl::StrCat("127.0.0.1:", server_->port());
    options.token = kToken;
    options.settings = MakeSettings();
    options.callbacks = std::get<1>(GetParam());
    return *Client::Connect(options, [](const absl::Status&) {});
  }
  // Makes all connections continue over tcp.
  static void LosePaths() {
    base::Descriptors none;
    none.limit = 100;
    paths::PathRelief::Get()->Relieve(none);
  }

  void RunProgram(unsigned seed) {
    Random random(seed);
    const std::unique_ptr<Client> client = Connect();
    std::vector<std::thread> threads;
    for (unsigned i = 1 + random() % 4; i > 0; --i) {
      std::vector<unsigned> seeds(1 + random() % 8);
      for (unsigned& stream : seeds) stream = random();
      threads.emplace_back([this, seeds, &client] {
        for (const unsigned stream : seeds) {
          std::make_shared<ClientSide>(stream, &callbacks_)->Run(client.get());
        }
      });
    }
    if (random() % 4 == 0) LosePaths();
    for (std::thread& thread : threads) thread.join();
  }

  Callbacks callbacks_;
  std::unique_ptr<Server> server_;
};

// Runs only the program of seed N if PENSTOCK_TEST_SEED=N.
TEST_P(StreamRandomTest, BothSidesSeeThePlan) {
  StartServer();
  const char* const chosen = getenv("PENSTOCK_TEST_SEED");
  unsigned seed = 0;
  const bool is_chosen = chosen != nullptr && absl::SimpleAtoi(chosen, &seed);
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  do {
    if (!is_chosen) seed = std::random_device()();
    SCOPED_TRACE(absl::StrCat("PENSTOCK_TEST_SEED=", seed));
    RunProgram(seed);
  } while (std::chrono::steady_clock::now() < limit && !HasFailure() &&
           !is_chosen);
  server_ = nullptr;
  // Waits for callbacks of the clients, which may still run. The server's
  // destructor has waited for its own callbacks.
  Waiter waiter(progress::PollingMode::kAdaptive);
  for (int i = 0; i < 20000 && callbacks_.open() > 0; ++i) {
    waiter.Wait(absl::Milliseconds(1));
  }
  EXPECT_EQ(callbacks_.open(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, StreamRandomTest,
    testing::Combine(testing::Values(Fabric::kShm, Fabric::kTcp),
                     testing::Values(CallbackThread::kLoop,
                                     CallbackThread::kAny)),
    [](const auto& info) {
      return absl::StrCat(FabricName(std::get<0>(info.param)),
                          std::get<1>(info.param) == CallbackThread::kLoop
                              ? "OnLoop"
                              : "Anywhere");
    });

}  // namespace
}  // namespace rpc
}  // namespace penstock
