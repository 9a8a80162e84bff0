// Tests the recording of calls that end in different ways.

#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "penstock/penstock.h"
#include "penstock/record.h"
#include "tests/e2e/call.h"
#include "tests/e2e/scripted_service.h"

namespace penstock::e2e {
namespace {

// Returns the number of calls by status.
std::map<int, int> StatusesIn(const std::string& path) {
  std::map<int, int> statuses;
  const gzFile file = gzopen(path.c_str(), "rb");
  char line[64 * 1024];
  while (gzgets(file, line, sizeof(line)) != nullptr) {
    const nlohmann::json part = nlohmann::json::parse(line);
    if (part.contains("status")) ++statuses[part["status"].get<int>()];
  }
  gzclose(file);
  return statuses;
}

void AwaitCancelled(grpc::ServerContext* context) {
  const auto end = In(kPatience);
  while (!context->IsCancelled() && std::chrono::system_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(context->IsCancelled());
}

class Server {
 public:
  explicit Server(Policy policy) {
    service_.empty = [](grpc::ServerContext*) { return grpc::Status::OK; };
    service_.unary = [](grpc::ServerContext* context, const SimpleRequest&,
                        SimpleResponse*) {
      if (context->client_metadata().count("cancel") > 0) {
        context->TryCancel();
        AwaitCancelled(context);
        return grpc::Status::OK;
      }
      return grpc::Status(grpc::StatusCode::NOT_FOUND, "as it says");
    };
    service_.duplex = [](grpc::ServerContext* context, ServerStream* stream) {
      StreamingOutputCallRequest request;
      stream->Read(&request);
      stream->Write(ResponseOf(8));
      AwaitCancelled(context);
      return grpc::Status(grpc::StatusCode::ABORTED, "nobody sees that");
    };
    Options options;
    options.policy = policy;
    grpc::ServerBuilder builder;
    Enable(&builder, options);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = TestService::NewStub(grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", port),
        Credentials(grpc::InsecureChannelCredentials(), options)));
  }
  ~Server() {
    server_->Shutdown();
    server_->Wait();
  }
  TestService::Stub* stub() { return stub_.get(); }

 private:
  ScriptedService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<TestService::Stub> stub_;
};

void CancelAStream(TestService::Stub* stub) {
  Call call;
  const auto stream = stub->FullDuplexCall(&call);
  stream->Write(StreamingOutputCallRequest());
  StreamingOutputCallResponse response;
  EXPECT_TRUE(stream->Read(&response));  // the handler has the message
  call.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

void HaveTheServerCancel(TestService::Stub* stub) {
  Call call;
  call.AddMetadata("cancel", "1");
  SimpleResponse response;
  EXPECT_EQ(stub->UnaryCall(&call, SimpleRequest(), &response).error_code(),
            grpc::StatusCode::CANCELLED);
}

TEST(RecordingTest, ACancelledCallHasNotTheStatusOfItsHandler) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/recording-", getpid());
  ASSERT_TRUE(RecordCalls(path).ok());
  for (const Policy policy : {Policy::kPrefer, Policy::kOff}) {
    Server server(policy);
    Call ok;
    Empty none;
    EXPECT_TRUE(server.stub()->EmptyCall(&ok, Empty(), &none).ok());
    Call refused;
    SimpleResponse response;
    EXPECT_EQ(server.stub()
                  ->UnaryCall(&refused, SimpleRequest(), &response)
                  .error_code(),
              grpc::StatusCode::NOT_FOUND);
    CancelAStream(server.stub());
    HaveTheServerCancel(server.stub());
  }
  FinishRecording();
  EXPECT_EQ(StatusesIn(path), (std::map<int, int>{{0, 2}, {1, 4}, {5, 2}}));
}

}  // namespace
}  // namespace penstock::e2e
