// Tests which calls a worker repeats, with a server of scripted answers.

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "ps/client/call_loop.h"
#include "ps/client/patient_call.h"
#include "ps/client/worker.h"
#include "tensor_service/calls.h"
#include "tensor_service/message.h"
#include "tests/ps/client/one_table.h"
#include "tests/ps/client/scripted_server.h"
#include "tests/transport/base/set_clock.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using Answer = ScriptedServer::Answer;

Answer Fails(grpc::StatusCode code, const char* message = "told to") {
  return {grpc::Status(code, message), {}};
}
Answer Verdict(v1::PushReply::Verdict verdict) {
  v1::PushReply reply;
  reply.set_verdict(verdict);
  return {grpc::Status::OK, tensor::FromProto(reply)};
}

class PatienceTest : public testing::Test {
 protected:
  PatienceTest()
      : server_(
            [this](const std::string& method, const grpc::ByteBuffer& request) {
              return OnCall(method, request);
            }) {}

  std::unique_ptr<Worker> Join(absl::Duration timeout = absl::Minutes(1)) {
    auto connection = TrainingConnection::Open({{server_.Channel()}});
    EXPECT_TRUE(connection.ok()) << connection.status();
    Worker::Options options;
    options.connection = *connection;
    options.push_timeout = timeout;
    options.pull_timeout = timeout;
    auto worker = Worker::Join(std::move(options));
    EXPECT_TRUE(worker.ok()) << worker.status();
    return *std::move(worker);
  }

  absl::optional<Answer> OnCall(const std::string& method,
                                const grpc::ByteBuffer& request) {
    absl::MutexLock lock(&mu_);
    if (method == "Describe") {
      return Answer{grpc::Status::OK, tensor::FromProto(v1::ServerReport())};
    }
    if (method == "GetModel") {
      return Answer{grpc::Status::OK, tensor::FromProto(Description())};
    }
    if (method == "Attend") return absl::nullopt;
    if (method == "Join") {
      ++joins_;
      v1::JoinReply reply;
      reply.set_lease_us(60 * 1000 * 1000);
      if (!join_status_.ok()) return Answer{join_status_, {}};
      return Answer{grpc::Status::OK, tensor::FromProto(reply)};
    }
    grpc::Slice bytes;
    (void)request.DumpToSingleSlice(&bytes);
    requests_.emplace_back(reinterpret_cast<const char*>(bytes.begin()),
                           bytes.size());
    if (script_.empty()) return absl::nullopt;
    absl::optional<Answer> answer = script_.front();
    script_.pop_front();
    return answer;
  }

  void Script(std::deque<absl::optional<Answer>> answers) {
    absl::MutexLock lock(&mu_);
    script_ = std::move(answers);
  }

  static StepGradients Ones() {
    return {{{{"w", *tensor::Tensor::Of<float>({2}, {1, 1})}}}, {}};
  }
  std::vector<std::string> requests() {
    absl::MutexLock lock(&mu_);
    return requests_;
  }
  int joins() {
    absl::MutexLock lock(&mu_);
    return joins_;
  }

  absl::Mutex mu_;
  std::deque<absl::optional<Answer>> script_;
  std::vector<std::string> requests_;
  grpc::Status join_status_;
  int joins_ = 0;
  ScriptedServer server_;  // declared last: its calls use the members above
};

TEST_F(PatienceTest, APushIsRepeatedWithTheSameBytes) {
  auto worker = Join();
  Script({Fails(grpc::UNAVAILABLE), Fails(grpc::RESOURCE_EXHAUSTED),
          Fails(grpc::UNAVAILABLE), Verdict(v1::PushReply::DUPLICATE)});
  auto pushed = worker->Push(0, Ones());
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  // Expects "counted", although the server says DUPLICATE: the earlier attempt
  // has counted, and only its answer was lost.
  EXPECT_EQ(pushed->verdicts[0], PushVerdict::kCounted);
  const auto sent = requests();
  ASSERT_EQ(sent.size(), 4u);
  for (const std::string& bytes : sent) EXPECT_EQ(bytes, sent[0]);
}

TEST_F(PatienceTest, ADuplicateAtFirstIsNotThisPush) {
  auto worker = Join();
  Script({Verdict(v1::PushReply::DUPLICATE), Verdict(v1::PushReply::LATE)});
  EXPECT_EQ(worker->Push(0, Ones())->verdicts[0], PushVerdict::kDuplicate);
  EXPECT_EQ(worker->Push(1, Ones())->verdicts[0], PushVerdict::kLate);
}

TEST_F(PatienceTest, AWorkerThatIsNoMemberAnyMoreJoinsAgain) {
  auto worker = Join();
  Script({Fails(grpc::FAILED_PRECONDITION), Verdict(v1::PushReply::COUNTED)});
  EXPECT_TRUE(worker->Push(0, Ones())->counted());
  EXPECT_EQ(joins(), 2);
}

TEST_F(PatienceTest, AWorkerWhoseRankIsTakenStops) {
  auto worker = Join();
  Script({Fails(grpc::FAILED_PRECONDITION)});
  {
    absl::MutexLock lock(&mu_);
    join_status_ = grpc::Status(grpc::ABORTED, "another one");
  }
  EXPECT_TRUE(absl::IsAborted(worker->Push(0, Ones()).status()));
  EXPECT_EQ(requests().size(), 1u);
}

TEST_F(PatienceTest, RejoiningForEverEnds) {
  auto worker = Join();
  Script(std::deque<absl::optional<Answer>>(
      20, Fails(grpc::FAILED_PRECONDITION, "epoch")));
  const absl::Status status = worker->Push(0, Ones()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(requests().size(), 11u);
}

TEST_F(PatienceTest, OtherErrorsEndItAndNameAll) {
  auto worker = Join();
  Script({Fails(grpc::INVALID_ARGUMENT, "not finite")});
  absl::Status status = worker->Push(0, Ones()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message().rfind("push of step 0: server 0 (ps0:7000): ", 0),
            0u)
      << status;
  EXPECT_NE(status.message().find("not finite"), std::string::npos);
  // Makes the server's error name the loss and the remedy.
  Script({Fails(grpc::DATA_LOSS, "rows on disk are lost")});
  status = worker->Pull(8).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(status.message().rfind("pull for step 8: server 0 (ps0:7000): ", 0),
            0u)
      << status;
  const std::string end = ": rows on disk are lost";
  EXPECT_EQ(status.message().substr(status.message().size() - end.size()), end);
}

TEST_F(PatienceTest, AMessageAboveALimitIsNotRepeated) {
  auto worker = Join();
  Script({Fails(grpc::RESOURCE_EXHAUSTED,
                "Received message larger than max (7 vs. 4)")});
  EXPECT_TRUE(absl::IsResourceExhausted(worker->Push(0, Ones()).status()));
  EXPECT_EQ(requests().size(), 1u);
}

TEST_F(PatienceTest, PatienceEndsWithTheTimeLimit) {
  auto worker = Join(absl::Milliseconds(200));
  Script(std::deque<absl::optional<Answer>>(
      1000, Fails(grpc::RESOURCE_EXHAUSTED, "full; try again later")));
  absl::Status status = worker->Push(0, Ones()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.message().find("gave up after"), std::string::npos);
  Script({});  // no answer
  status = worker->Pull(1).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

// Tests that a call that was repeated for a long time logs a line. People then
// know why a training makes no progress.
TEST_F(PatienceTest, ACallThatIsRepeatedForLongSaysSo) {
  CallLoop loop;
  const auto lines_of = [&](absl::Duration after, absl::Duration every) {
    Script({Fails(grpc::UNAVAILABLE), Fails(grpc::RESOURCE_EXHAUSTED, "full\n"),
            Fails(grpc::RESOURCE_EXHAUSTED, "still"),
            Verdict(v1::PushReply::COUNTED)});
    std::vector<std::string> lines;
    PatientCall::Notes notes;
    notes.what = [] { return "push of step 3: server 1"; };
    notes.after = after;
    notes.every = every;
    notes.log = [&](const std::string& line) { lines.push_back(line); };
    absl::Notification end;
    PatientCall::Start(
        &loop,
        {server_.Channel(), "/penstock.ps.v1.ParameterServer/Push",
         tensor::FromProto(v1::PushReply()),
         base::SteadyNow() + absl::Minutes(2), nullptr},
        nullptr, [&](const CallLoop::Reply&, int) { end.Notify(); }, notes);
    end.WaitForNotification();
    return lines;
  };
  const std::vector<std::string> all =
      lines_of(absl::ZeroDuration(), absl::ZeroDuration());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].rfind("ps: push of step 3: server 1: repeated since ", 0),
            0u)
      << all[1];
  EXPECT_NE(all[1].find(", 2 attempts, for at most "), std::string::npos);
  EXPECT_NE(all[1].find(": full\\x0a"), std::string::npos) << all[1];
  EXPECT_EQ(all[1].find('\n'), std::string::npos);
  EXPECT_NE(all[2].find("still"), std::string::npos);
  EXPECT_EQ(lines_of(absl::ZeroDuration(), absl::Hours(1)).size(), 1u);
  EXPECT_EQ(lines_of(absl::Hours(1), absl::ZeroDuration()).size(), 0u);
}

// Tests that waits do not become longer if the system's clock is set back.
// gRPC's own waits would take an hour longer.
TEST_F(PatienceTest, AClockThatIsSetBackMakesNoWaitLonger) {
  auto worker = Join(absl::Milliseconds(300));
  SetClockBy(absl::Hours(1));  // earlier waits see the clock set back
  EXPECT_TRUE(absl::IsDeadlineExceeded(worker->Pull(0).status()));
  Script({Fails(grpc::UNAVAILABLE), Fails(grpc::UNAVAILABLE),
          Verdict(v1::PushReply::COUNTED)});
  EXPECT_TRUE(worker->Push(0, Ones()).ok());
  SetClockBy(absl::ZeroDuration());
}

TEST_F(PatienceTest, AServerHasOnePushAtATime) {
  auto worker = Join();
  absl::Notification first;
  worker->StartPush(0, Ones(), [&](const auto& pushed) {
    EXPECT_TRUE(absl::IsCancelled(pushed.status()));
    first.Notify();
  });
  // Starts two pushes. The first push is not answered, so the second push is
  // not sent.
  worker->StartPush(1, Ones(), [](const auto& pushed) {
    EXPECT_TRUE(absl::IsCancelled(pushed.status()));
  });
  auto pulled = std::make_shared<absl::Notification>();
  worker->StartPull(0, {}, [pulled](const auto&) { pulled->Notify(); });
  {
    absl::MutexLock lock(&mu_);
    const auto two = [this] { return requests_.size() == 2; };
    mu_.Await(absl::Condition(&two));  // the push, and the pull after it
  }
  worker = nullptr;
  EXPECT_TRUE(first.HasBeenNotified());
  EXPECT_TRUE(pulled->HasBeenNotified());
  EXPECT_EQ(requests().size(), 2u);
}

TEST_F(PatienceTest, AnAnswerThatIsNotWhatWasAskedForIsAnError) {
  auto worker = Join();
  const auto answer = [](tensor::Bundle bundle) {
    tensor::Message<v1::PullReplyHeader> message;
    message.bundle = std::move(bundle);
    return Answer{grpc::Status::OK, *tensor::Encode(message)};
  };
  grpc::Slice nonsense("\xff\xff\xff");
  Script({answer({}), answer({{{"w", *tensor::Tensor::Of<float>({1}, {1})}}}),
          answer({{{"w", *tensor::Tensor::Of<double>({2}, {1, 1})}}}),
          Answer{grpc::Status::OK, grpc::ByteBuffer(&nonsense, 1)},
          answer({{{"w", *tensor::Tensor::Of<float>({2}, {1, 1})}}})});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(absl::IsInternal(worker->Pull(0).status())) << i;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(worker->Pull(0).status()));
  EXPECT_TRUE(worker->Pull(0).ok());
}

}  // namespace
}  // namespace penstock::ps
