// Tests gRPC's own services, health checks and reflection, next to the
// application's services. Debian has no messages for their clients, so the
// tests encode messages themselves.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/health_check_service_interface.h"
#include "gtest/gtest.h"
#include "tests/e2e/calls/standard_services.pb.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

constexpr char kServiceName[] = "penstock.e2e.TestService";

class ServicesTest : public ServiceTest {
 protected:
  // Enables both services before the first server. They then apply to all
  // servers of the process.
  static void SetUpTestSuite() {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  }

  // Returns the next message of `stream`.
  template <typename Message>
  static Message Read(RawStream* stream) {
    Message message;
    auto bytes = stream->Read();
    EXPECT_TRUE(bytes.has_value());
    EXPECT_TRUE(message.ParseFromString(bytes.value_or("")));
    return message;
  }

  HealthCheckResponse Check(const std::string& service, grpc::Status* status) {
    Call call;
    HealthCheckRequest request;
    request.set_service(service);
    RawStream stream(channel(), &call, "/grpc.health.v1.Health/Check");
    EXPECT_TRUE(stream.Write(request.SerializeAsString()));
    EXPECT_TRUE(stream.WritesDone());
    HealthCheckResponse response;
    auto bytes = stream.Read();
    if (bytes.has_value()) response.ParseFromString(*bytes);
    *status = stream.Finish();
    return response;
  }
};

TEST_P(ServicesTest, HealthOfTheServerCanBeAsked) {
  grpc::Status status;
  EXPECT_EQ(Check("", &status).status(), HealthCheckResponse::SERVING);
  EXPECT_TRUE(status.ok()) << status.error_message();
  server()->GetHealthCheckService()->SetServingStatus(false);
  EXPECT_EQ(Check("", &status).status(), HealthCheckResponse::NOT_SERVING);
  Check("unknown", &status);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  ExpectTraffic(3, 2);
}

TEST_P(ServicesTest, HealthCanBeWatched) {
  Call call;
  RawStream stream(channel(), &call, "/grpc.health.v1.Health/Watch");
  ASSERT_TRUE(stream.Write(HealthCheckRequest().SerializeAsString()));
  ASSERT_TRUE(stream.WritesDone());
  EXPECT_EQ(Read<HealthCheckResponse>(&stream).status(),
            HealthCheckResponse::SERVING);
  server()->GetHealthCheckService()->SetServingStatus(false);
  EXPECT_EQ(Read<HealthCheckResponse>(&stream).status(),
            HealthCheckResponse::NOT_SERVING);
  call.TryCancel();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
  ExpectTraffic(1, 2);
}

TEST_P(ServicesTest, ReflectionListsTheServices) {
  Call call;
  RawStream stream(
      channel(), &call,
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  ReflectionRequest request;
  request.set_list_services("*");
  ASSERT_TRUE(stream.Write(request.SerializeAsString()));
  const auto response = Read<ReflectionResponse>(&stream);
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  EXPECT_THAT(names, testing::Contains(kServiceName));
  EXPECT_TRUE(stream.WritesDone());
  EXPECT_EQ(stream.Read(), absl::nullopt);
  EXPECT_TRUE(stream.Finish().ok());
  ExpectTraffic(1, 1);
}

INSTANTIATE_TEST_SUITE_P(Over, ServicesTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
