// Tests connections with a minimal front end and a clock that the test sets.

#include "transport/connection/connection.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace connection {
namespace {

// An executor that runs due tasks when the test moves the clock.
class ManualExecutor final : public Executor {
 public:
  absl::Time Now() const override { return now_; }
  void Post(std::function<void()> task) override {
    RunAfter(absl::ZeroDuration(), [task](bool) { task(); });
  }
  Id RunAfter(absl::Duration delay,
              std::function<void(bool is_due)> task) override {
    tasks_[++last_id_] = {now_ + delay, std::move(task)};
    return last_id_;
  }
  void Cancel(Id id) override { tasks_.erase(id); }

  void Advance(absl::Duration by) {
    now_ += by;
    for (auto it = tasks_.begin(); it != tasks_.end();) {
      if (it->second.due > now_) {
        ++it;
        continue;
      }
      const std::function<void(bool)> task = std::move(it->second.run);
      tasks_.erase(it);
      task(/*is_due=*/true);
      it = tasks_.begin();
    }
  }
  bool empty() const { return tasks_.empty(); }

 private:
  struct Task {
    absl::Time due;
    std::function<void(bool)> run;
  };
  absl::Time now_ = absl::FromUnixSeconds(1000);
  Id last_id_ = 0;
  std::map<Id, Task> tasks_;
};

// A stream that keeps written bytes until the test takes the bytes.
class HeldStream final : public fabric::tcp::ByteStream {
 public:
  void Write(std::vector<memory::Bytes> pieces) override {
    for (const memory::Bytes& piece : pieces) {
      bytes.append(reinterpret_cast<const char*>(piece.data), piece.size);
    }
  }
  std::string bytes;
};

class FrontEnd final : public Connection {
 public:
  FrontEnd(const Config& config, std::shared_ptr<Executor> executor)
      : Connection(config, std::move(executor),
                   std::make_unique<HeldStream>()) {}

  void Start() {
    Enter([&] { Begin(nullptr); });
  }
  void Close(const absl::Status& why) {
    Enter([&] { session_->Close(why); });
  }
  // Delivers the bytes that this side has written to `peer`. Returns false if
  // there were none.
  bool DeliverTo(FrontEnd* peer) {
    const std::string bytes =
        std::exchange(static_cast<HeldStream*>(stream())->bytes, "");
    if (bytes.empty()) return false;
    peer->Enter([&] {
      peer->lifeline_->OnBytes(
          {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    });
    Enter([&] { lifeline_->OnWritten(); });
    return true;
  }
  void Enter(absl::FunctionRef<void()> work) override {
    Lock();
    work();
    Flush([this] { return executor()->Now(); });
    Sync();
    mu_.unlock();
    Unref();
  }

  absl::optional<absl::Status> settled;
  absl::optional<absl::Status> ended;
  bool stream_is_over = false;

 private:
  ~FrontEnd() override = default;

  bool PollPath() override { return false; }
  void LeaveInput() override {}
  void OnPathChanged(const std::shared_ptr<fabric::Endpoint>&) override {}
  void OnSettled(const absl::Status& status) override { settled = status; }
  void OnEnded(const absl::Status& cause) override { ended = cause; }
  void EndStream() override { stream_is_over = true; }
  bool HasCalls() const override { return true; }
  void OnStreamOpened(uint32_t) override {}
  void OnGoaway(uint32_t, const absl::Status&) override {}
  absl::Status OnEntry(uint32_t, absl::string_view) override {
    return absl::OkStatus();
  }
  void OnPing() override {}
  void OnPong(uint64_t) override {}
};

class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() : client_(Make(true)), server_(Make(false)) {}
  ~ConnectionTest() override {
    for (FrontEnd* side : {client_, server_}) {
      side->Close(absl::UnavailableError("the test is over"));
    }
    executor_->Advance(absl::Minutes(1));
    EXPECT_TRUE(executor_->empty());
    for (FrontEnd* side : {client_, server_}) side->Unref();
  }

  FrontEnd* Make(bool is_client) {
    Config config;
    config.is_client = is_client;
    config.settings.fabrics = {Fabric::kTcp};
    config.settings.heartbeat_ms = 0;
    config.peer = is_client ? "server" : "client";
    if (is_client) config.keepalive.time = absl::Seconds(10);
    config.keepalive.timeout = absl::Seconds(3);
    return new FrontEnd(config, executor_);
  }
  void StartBoth() {
    client_->Start();
    server_->Start();
    Deliver();
  }
  void Deliver() {
    while (client_->DeliverTo(server_) || server_->DeliverTo(client_)) {
    }
  }

  const std::shared_ptr<ManualExecutor> executor_ =
      std::make_shared<ManualExecutor>();
  FrontEnd* const client_;
  FrontEnd* const server_;
};

TEST_F(ConnectionTest, PeerThatSaysNoHelloInTimeIsDropped) {
  client_->Start();
  executor_->Advance(kHelloLimit - absl::Milliseconds(1));
  EXPECT_FALSE(client_->ended.has_value());
  executor_->Advance(absl::Milliseconds(1));
  ASSERT_TRUE(client_->ended.has_value());
  EXPECT_TRUE(absl::IsDeadlineExceeded(*client_->ended)) << *client_->ended;
  EXPECT_EQ(client_->settled, client_->ended);
}

TEST_F(ConnectionTest, PeerThatSaysHelloIsNot) {
  StartBoth();
  EXPECT_EQ(client_->settled, absl::OkStatus());
  EXPECT_EQ(server_->settled, absl::OkStatus());
  executor_->Advance(kHelloLimit);
  EXPECT_FALSE(client_->ended.has_value());
}

TEST_F(ConnectionTest, PeerThatAnswersPingsLives) {
  StartBoth();
  for (int i = 0; i < 3; ++i) {
    executor_->Advance(absl::Seconds(10));
    Deliver();
  }
  executor_->Advance(absl::Seconds(3));
  EXPECT_FALSE(client_->ended.has_value());
}

TEST_F(ConnectionTest, PeerThatAnswersNoPingIsGivenUp) {
  StartBoth();
  executor_->Advance(absl::Seconds(10));
  EXPECT_FALSE(client_->ended.has_value());
  for (int i = 0; i < 8; ++i) executor_->Advance(absl::Seconds(3) / 8);
  ASSERT_TRUE(client_->ended.has_value());
  EXPECT_EQ(client_->ended->message(),
            "keepalive watchdog timeout: the peer did not answer within 3s");
}

TEST_F(ConnectionTest, PeerThatDoesNotReadGetsSomeTimeForTheRest) {
  StartBoth();
  server_->Enter([&] { server_->session()->SendPing(1); });
  server_->Close(absl::UnavailableError("enough"));
  EXPECT_FALSE(server_->stream_is_over);
  executor_->Advance(absl::Seconds(5));
  EXPECT_TRUE(server_->stream_is_over);
}

TEST_F(ConnectionTest, StreamEndsAtOnceIfAllIsWritten) {
  StartBoth();
  server_->Close(absl::UnavailableError("enough"));
  EXPECT_TRUE(server_->stream_is_over);
}

// Cancels a timer and starts it again with another function. Only the second
// function may be called.
TEST_F(ConnectionTest, CancelledTimerDoesNotCall) {
  int calls = 0;
  Timer timer(client_);
  client_->Enter([&] {
    timer.Start(absl::Seconds(1), [&] { ++calls; });
    timer.Cancel();
    timer.Start(absl::Seconds(2), [&] { calls += 10; });
  });
  executor_->Advance(absl::Seconds(1));
  EXPECT_EQ(calls, 0);
  executor_->Advance(absl::Seconds(1));
  EXPECT_EQ(calls, 10);
  EXPECT_FALSE(timer.pending());
}

}  // namespace
}  // namespace connection
}  // namespace penstock
