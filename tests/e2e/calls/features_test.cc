// Tests gRPC's own filters and layers above the transport: compression,
// interceptors, retries and service configs. Also trailers-only answers in
// callbacks.

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/client_callback.h"
#include "grpcpp/support/client_interceptor.h"
#include "grpcpp/support/server_interceptor.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/compression.h"
#include "tests/e2e/scripted_service.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

constexpr size_t kLarge = 200000;

class FeaturesTest : public StackTest {
 protected:
  // Starts the server, with the scripts that the test has set.
  void Begin(grpc::ChannelArguments arguments = {}) {
    Serve(&service_);
    special_ = NewChannel(std::move(arguments));
    stub_ = TestService::NewStub(special_);
  }
  // Stops the server before its service is destroyed.
  ~FeaturesTest() override { StopServing(std::chrono::milliseconds(0)); }

  uint64_t BytesSent() {
    auto reports = DescribePaths(*special_);
    return reports.empty() ? 0 : reports[0].bytes_sent;
  }

  ScriptedService service_;
  std::shared_ptr<grpc::Channel> special_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(FeaturesTest, MessagesOfAStreamAreCompressedOneByOne) {
  std::vector<bool> compressed;
  service_.duplex = [&](grpc::ServerContext* context, ServerStream* stream) {
    StreamingOutputCallRequest request;
    while (stream->Read(&request)) {
      compressed.push_back(CameCompressed(context->c_call()));
    }
    return grpc::Status::OK;
  };
  Begin();
  Call call;
  call.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  auto stream = stub_->FullDuplexCall(&call);
  const auto plain = grpc::WriteOptions().set_no_compression();
  EXPECT_TRUE(stream->Write(RequestOf(0, kLarge)));
  EXPECT_TRUE(stream->Write(RequestOf(0, kLarge), plain));
  EXPECT_TRUE(stream->Write(RequestOf(0, kLarge)));
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(compressed, (std::vector<bool>{true, false, true}));
  ExpectTraffic(*special_, 3, 0);
  if (IsPenstock(GetParam())) {
    EXPECT_LT(BytesSent(), kLarge * 3 / 2);
  }
}

TEST_P(FeaturesTest, ChannelsMayCompressByDefault) {
  service_.unary = [](grpc::ServerContext* context, const SimpleRequest&,
                      SimpleResponse* response) {
    response->set_allocated_payload(
        new Payload(ZeroPayload(CameCompressed(context->c_call()) ? 1 : 0)));
    return grpc::Status::OK;
  };
  for (auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ChannelArguments arguments;
    arguments.SetCompressionAlgorithm(algorithm);
    Begin(arguments);
    Call call;
    SimpleRequest request;
    *request.mutable_payload() = ZeroPayload(kLarge);
    SimpleResponse response;
    EXPECT_TRUE(stub_->UnaryCall(&call, request, &response).ok());
    EXPECT_EQ(response.payload().body().size(), 1u);
    ExpectTraffic(*special_, 1, 1);
  }
}

// Counts each message that its side sends, and adds metadata.
class Counter final : public grpc::experimental::Interceptor {
 public:
  Counter(const char* key, std::atomic<int>* count)
      : key_(key), count_(count) {}

  void Intercept(
      grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      ++*count_;
    }
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(key_, "added");
    }
    methods->Proceed();
  }

 private:
  const char* const key_;
  std::atomic<int>* const count_;
};

struct ClientCounters final
    : public grpc::experimental::ClientInterceptorFactoryInterface {
  explicit ClientCounters(std::atomic<int>* messages) : count(messages) {}
  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new Counter(kEchoInitial, count);
  }
  std::atomic<int>* const count;
};

struct ServerCounters final
    : public grpc::experimental::ServerInterceptorFactoryInterface {
  explicit ServerCounters(std::atomic<int>* messages) : count(messages) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo*) override {
    return new Counter("x-server", count);
  }
  std::atomic<int>* const count;
};

class InterceptorTest : public ServiceTest {
 protected:
  void SetUp() override {
    using grpc::experimental::ServerInterceptorFactoryInterface;
    std::vector<std::unique_ptr<ServerInterceptorFactoryInterface>> factories;
    factories.push_back(std::make_unique<ServerCounters>(&by_server_));
    Serve(&service_, [&](grpc::ServerBuilder* builder) {
      builder->experimental().SetInterceptorCreators(std::move(factories));
    });
  }

  std::shared_ptr<grpc::Channel> InterceptedChannel() {
    using grpc::experimental::ClientInterceptorFactoryInterface;
    std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>> factories;
    factories.push_back(std::make_unique<ClientCounters>(&by_client_));
    return grpc::experimental::CreateCustomChannelWithInterceptors(
        address(),
        CredentialsFor(GetParam(), grpc::InsecureChannelCredentials()), {},
        std::move(factories));
  }

  std::atomic<int> by_client_{0};
  std::atomic<int> by_server_{0};
};

TEST_P(InterceptorTest, BothSidesSeeAndChangeEachCall) {
  auto channel = InterceptedChannel();
  auto stub = TestService::NewStub(channel);
  Call call;
  auto stream = stub->FullDuplexCall(&call);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(PingPong(stream.get(), 60000));
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(by_client_, 3);
  EXPECT_EQ(by_server_, 3);
  // Expects the metadata entry that the client's interceptor has added and the
  // service has echoed.
  EXPECT_EQ(call.GetServerInitialMetadata().count(kEchoInitial), 1u);
  EXPECT_EQ(call.GetServerInitialMetadata().count("x-server"), 1u);
  ExpectTraffic(*channel, 3, 3);
}

// Answers a call of a given attempt: fails the first two attempts, and serves
// the third.
grpc::Status ThirdTimeLucky(grpc::ServerContext* context, int attempt) {
  const auto& metadata = context->client_metadata();
  auto previous = metadata.find("grpc-previous-rpc-attempts");
  EXPECT_EQ(previous == metadata.end(), attempt == 1);
  if (attempt == 3) return grpc::Status::OK;
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not yet");
}

constexpr char kRetryPolicy[] = R"({"methodConfig": [{
      "name": [{"service": "penstock.e2e.TestService"}],
      "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.01s",
                      "maxBackoff": "0.01s", "backoffMultiplier": 1,
                      "retryableStatusCodes": ["UNAVAILABLE"]}}]})";

TEST_P(FeaturesTest, ServiceConfigRetriesWhatIsUnavailable) {
  std::atomic<int> attempts{0};
  service_.empty = [&](grpc::ServerContext* context) {
    return ThirdTimeLucky(context, ++attempts);
  };
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kRetryPolicy);
  Begin(arguments);
  const grpc::Status status = MakeEmptyCall(stub_.get());
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(attempts, 3);
  ExpectTraffic(*special_, 3, 1);
}

// Tests that each attempt sends the whole message, although gRPC passes the
// same buffer to each attempt.
TEST_P(FeaturesTest, EachAttemptSendsTheWholeMessage) {
  std::vector<std::string> received;
  service_.unary = [&](grpc::ServerContext* context,
                       const SimpleRequest& request, SimpleResponse*) {
    received.push_back(request.payload().body());
    return ThirdTimeLucky(context, static_cast<int>(received.size()));
  };
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kRetryPolicy);
  Begin(arguments);
  for (const size_t size : {size_t{100}, kLarge}) {
    received.clear();
    Call call;
    SimpleRequest request;
    request.mutable_payload()->set_body(std::string(size, 'r'));
    SimpleResponse response;
    const grpc::Status status = stub_->UnaryCall(&call, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(received, std::vector<std::string>(3, request.payload().body()));
  }
}

TEST_P(FeaturesTest, ServiceConfigLimitsSizes) {
  service_.unary = [](grpc::ServerContext*, const SimpleRequest& request,
                      SimpleResponse* response) {
    *response->mutable_payload() = ZeroPayload(request.response_size());
    return grpc::Status::OK;
  };
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(R"({"methodConfig": [{
      "name": [{"service": "penstock.e2e.TestService"}],
      "maxRequestMessageBytes": 1000, "maxResponseMessageBytes": 1000}]})");
  Begin(arguments);
  const auto send = [&](size_t request_size, size_t response_size) {
    Call call;
    SimpleRequest request;
    *request.mutable_payload() = ZeroPayload(request_size);
    request.set_response_size(response_size);
    SimpleResponse response;
    return stub_->UnaryCall(&call, request, &response).error_code();
  };
  EXPECT_EQ(send(900, 900), grpc::StatusCode::OK);
  EXPECT_EQ(send(1100, 900), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(send(900, 1100), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectTraffic(*special_, 2, 2);
}

// Records whether the callback has the initial metadata.
class EndingReactor final
    : public grpc::ClientBidiReactor<StreamingOutputCallRequest,
                                     StreamingOutputCallResponse> {
 public:
  explicit EndingReactor(TestService::Stub* stub) {
    stub->async()->FullDuplexCall(&call_, this);
    StartRead(&response_);
    StartCall();
  }
  void OnReadInitialMetadataDone(bool ok) override { initial_ok_ = ok; }
  void OnDone(const grpc::Status& status) override { done_.set_value(status); }

  grpc::Status Await() { return done_.get_future().get(); }
  bool initial_ok() const { return initial_ok_; }

 private:
  Call call_;
  StreamingOutputCallResponse response_;
  std::atomic<bool> initial_ok_{false};
  std::promise<grpc::Status> done_;
};

TEST_P(FeaturesTest, CallbacksTellTrailersOnlyFromInitialMetadata) {
  std::atomic<bool> has_initial{false};
  service_.duplex = [&](grpc::ServerContext*, ServerStream* stream) {
    if (has_initial) stream->SendInitialMetadata();
    return grpc::Status(grpc::StatusCode::ABORTED, "as asked");
  };
  Begin();
  for (bool initial : {false, true}) {
    has_initial = initial;
    EndingReactor reactor(stub_.get());
    EXPECT_EQ(reactor.Await().error_code(), grpc::StatusCode::ABORTED);
    EXPECT_EQ(reactor.initial_ok(), initial);
  }
  ExpectTraffic(*special_, 0, 0);
}

INSTANTIATE_TEST_SUITE_P(Over, FeaturesTest, EachPath(), PathName());
INSTANTIATE_TEST_SUITE_P(Over, InterceptorTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
