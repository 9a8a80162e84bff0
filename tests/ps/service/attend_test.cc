// Tests workers that count as lost when a stream ends.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "ps/service/service.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

constexpr WorkerId kWorker = {3, 11};

class AttendTest : public testing::Test {
 protected:
  // One Attend stream of a worker.
  struct Stream {
    explicit Stream(const std::shared_ptr<grpc::Channel>& channel)
        : stub(v1::ParameterServer::NewStub(channel)),
          writer(stub->Attend(&context, &reply)) {}

    void Beat(const WorkerId& worker, bool leaving = false) {
      v1::Heartbeat beat;
      beat.set_run(SmallServer::kView.run);
      beat.mutable_worker()->set_rank(worker.rank);
      beat.mutable_worker()->set_incarnation(worker.incarnation);
      beat.set_leaving(leaving);
      EXPECT_TRUE(writer->Write(beat));
    }
    // Returns once the server has ended the stream.
    grpc::Status End() {
      writer->WritesDone();
      return writer->Finish();
    }

    grpc::ClientContext context;
    v1::AttendReply reply;
    std::unique_ptr<v1::ParameterServer::Stub> stub;
    std::unique_ptr<grpc::ClientWriter<v1::Heartbeat>> writer;
  };

  AttendTest() : service_(MakeService(&*core_)) {
    EXPECT_TRUE(core_.Define({{SparseTable("e", 1)}}).ok());
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                   grpc::InsecureChannelCredentials());
  }
  ~AttendTest() override {
    core_->Drain();
    server_->Shutdown();
    server_->Wait();
  }

  void WaitForMembers(uint32_t members) {
    while (core_->report().live_workers != members) std::this_thread::yield();
  }

  SmallServer core_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(AttendTest, StreamThatEndsWithoutAGoodByeLosesItsWorker) {
  Stream stream(channel_);
  stream.Beat(kWorker);
  WaitForMembers(1);
  EXPECT_TRUE(stream.End().ok());
  EXPECT_EQ(core_->report().live_workers, 0u);
  EXPECT_EQ(core_->report().workers_lost, 1u);
}

TEST_F(AttendTest, WorkerThatLeavesIsNotLost) {
  Stream stream(channel_);
  stream.Beat(kWorker);
  stream.Beat(kWorker, /*leaving=*/true);
  EXPECT_TRUE(stream.End().ok());
  EXPECT_EQ(core_->report().live_workers, 0u);
  EXPECT_EQ(core_->report().workers_lost, 0u);
}

TEST_F(AttendTest, WorkerThatHasConnectedAnewIsNotLostWithItsOldStream) {
  Stream old(channel_);
  old.Beat(kWorker);
  WaitForMembers(1);
  core_->Lost(kWorker);  // the next heartbeat must add the member again
  Stream next(channel_);
  next.Beat(kWorker);
  WaitForMembers(1);
  EXPECT_TRUE(old.End().ok());
  EXPECT_EQ(core_->report().live_workers, 1u);
  EXPECT_EQ(core_->report().workers_lost, 1u);
  EXPECT_TRUE(next.End().ok());
  EXPECT_EQ(core_->report().workers_lost, 2u);
}

TEST_F(AttendTest, StreamIsOfOneWorker) {
  Stream stream(channel_);
  stream.Beat(kWorker);
  stream.Beat({4, 12});
  const grpc::Status status = stream.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("worker 4"), std::string::npos);
  EXPECT_EQ(core_->report().live_workers, 0u);
}

}  // namespace
}  // namespace penstock::ps
