// Tests connections that move between TCP and shared memory at random offsets
// under load. Compares all bytes. SWITCH_SEEDS is the number of seeds, and
// SWITCH_SEED is the first one.

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/scripted_service.h"
#include "tests/e2e/shm_loss.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

constexpr int kMessages = 30;
constexpr int kStreams = 3;

uint32_t NumberOf(const char* variable, uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::atoi(text));
}

// Returns a log-uniform size of up to 1 MiB.
size_t AnySize(std::mt19937* random) {
  std::uniform_real_distribution<double> share(0, 1);
  return static_cast<size_t>(std::exp(share(*random) * std::log(1 << 20)));
}

// A stream whose server echoes all messages. One thread writes, another one
// reads.
class Exchange {
 public:
  // A reader that is late begins at LetRead() or Finish().
  Exchange(TestService::Stub* stub, uint32_t seed, bool late)
      : seed_(seed), late_(late) {
    call_.set_deadline(In(3 * kPatience));
    stream_ = stub->FullDuplexCall(&call_);
    writer_ = std::thread([this] { Write(); });
    reader_ = std::thread([this] { Read(); });
  }
  // Waits for the end. Returns the status without any check.
  grpc::Status Finish() {
    LetRead();
    reader_.join();
    writer_.join();
    return stream_->Finish();
  }
  void LetRead() { may_read_ = true; }
  uint64_t bytes() const { return bytes_; }
  int messages() const { return messages_; }

 private:
  std::string Message(int number, std::mt19937* random) const {
    return Pattern(AnySize(random), seed_ + static_cast<uint32_t>(number));
  }
  void Write() {
    std::mt19937 random(seed_);
    for (int i = 0; i < kMessages; ++i) {
      StreamingOutputCallRequest request;
      request.mutable_payload()->set_body(Message(i, &random));
      if (!stream_->Write(request)) break;
    }
    stream_->WritesDone();
  }
  void Read() {
    while (late_ && !may_read_) std::this_thread::yield();
    std::mt19937 random(seed_);
    StreamingOutputCallResponse response;
    while (stream_->Read(&response)) {
      const std::string wanted = Message(messages_, &random);
      EXPECT_TRUE(response.payload().body() == wanted)
          << "message " << messages_ << " of " << wanted.size() << " bytes";
      bytes_ += wanted.size();
      ++messages_;
    }
  }

  const uint32_t seed_;
  const bool late_;
  Call call_;
  std::unique_ptr<Stream> stream_;
  std::atomic<bool> may_read_{false};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<int> messages_{0};
  std::thread writer_;
  std::thread reader_;
};

class PathSwitchTest : public StackTest {
 protected:
  void SetUp() override {
    service_.duplex = [](grpc::ServerContext*, ServerStream* stream) {
      StreamingOutputCallRequest request;
      while (stream->Read(&request)) {
        StreamingOutputCallResponse response;
        response.mutable_payload()->set_body(request.payload().body());
        if (!stream->Write(response)) break;
      }
      return grpc::Status::OK;
    };
    Serve(&service_);
  }
  // Stops the server before its service is destroyed.
  ~PathSwitchTest() override { StopServing(std::chrono::milliseconds(0)); }

  // Begins exchanges on a new connection. In every third exchange, the client
  // reads late.
  void Begin(uint32_t seed) {
    channel_ = NewChannel();
    stub_ = TestService::NewStub(channel_);
    for (uint32_t i = 0; i < kStreams; ++i) {
      exchanges_.push_back(std::make_unique<Exchange>(
          stub_.get(), seed * kStreams + i, /*late=*/i == kStreams - 1));
    }
  }
  uint64_t Bytes() const {
    uint64_t bytes = 0;
    for (const auto& exchange : exchanges_) bytes += exchange->bytes();
    return bytes;
  }
  bool IsOver() const {
    int messages = 0;
    for (const auto& exchange : exchanges_) messages += exchange->messages();
    // Does not wait for the exchange whose client reads late.
    return messages >= kMessages * (kStreams - 1);
  }
  // Waits until `bytes` more bytes have arrived, or most messages have arrived.
  void Await(uint64_t bytes) {
    const uint64_t goal = Bytes() + bytes;
    const auto end = In(kPatience);
    while (Bytes() < goal && !IsOver() &&
           std::chrono::system_clock::now() < end) {
      std::this_thread::yield();
    }
  }
  // Waits until both directions have moved to shared memory, and then ends that
  // path.
  void BreakNext() {
    const auto end = In(kPatience);
    while (!HasMoved()) {
      if (IsOver() || std::chrono::system_clock::now() > end) return;
      std::this_thread::yield();
    }
    BreakSharedMemory();
    ++breaks_;
  }
  bool HasMoved() {
    for (const auto& reports :
         {DescribePaths(*channel_), DescribePaths(*server())}) {
      if (reports.empty()) return false;
      for (const PathReport& report : reports) {
        if (report.path != "shm") return false;
      }
    }
    return true;
  }

  ScriptedService service_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TestService::Stub> stub_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  int breaks_ = 0;
};

TEST_P(PathSwitchTest, NoByteIsLostOrChanged) {
  const uint32_t first = NumberOf("SWITCH_SEED", 1);
  const uint32_t seeds = NumberOf("SWITCH_SEEDS", 8);
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("SWITCH_SEED=", seed));
    std::mt19937 random(seed);
    Begin(seed);
    for (int loss = 0; loss < 3; ++loss) {
      if (random() % 3 > 0) Await(AnySize(&random));
      BreakNext();
    }
    for (auto& exchange : exchanges_) {
      const grpc::Status status = exchange->Finish();
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_EQ(exchange->messages(), kMessages);
    }
    exchanges_.clear();
    if (HasFailure()) return;
  }
  EXPECT_GT(breaks_, 0);
}

TEST_P(PathSwitchTest, ServerThatEndsInMidSwitchEndsAllCalls) {
  const uint32_t first = NumberOf("SWITCH_SEED", 1);
  const uint32_t seeds = NumberOf("SWITCH_SEEDS", 8);
  for (uint32_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("SWITCH_SEED=", seed));
    std::mt19937 random(seed);
    Begin(seed);
    Await(AnySize(&random));
    if (random() % 2 == 0) BreakNext();
    StopServing(std::chrono::milliseconds(0));
    for (auto& exchange : exchanges_) {
      const grpc::StatusCode code = exchange->Finish().error_code();
      EXPECT_NE(code, grpc::StatusCode::DEADLINE_EXCEEDED);
    }
    exchanges_.clear();
    Serve(&service_);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Over, PathSwitchTest, testing::Values(Path::kShm),
                         PathName());

}  // namespace
}  // namespace penstock::e2e
