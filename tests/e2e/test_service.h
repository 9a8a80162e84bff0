// The server of gRPC's interoperability tests.

#ifndef PENSTOCK_TESTS_E2E_TEST_SERVICE_H_
#define PENSTOCK_TESTS_E2E_TEST_SERVICE_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "grpcpp/support/sync_stream.h"
#include "tests/e2e/testing.grpc.pb.h"

namespace penstock::e2e {

// Returns a payload of `size` zeros, as in the published test cases.
Payload ZeroPayload(size_t size);

// The metadata keys that the service echoes.
constexpr char kEchoInitial[] = "x-grpc-test-echo-initial";
constexpr char kEchoTrailing[] = "x-grpc-test-echo-trailing-bin";

// A service with the calls of gRPC's interoperability tests. Thread-safe,
// because gRPC calls it on any thread.
class TestServiceImpl final : public TestService::Service {
 public:
  grpc::Status EmptyCall(grpc::ServerContext* context, const Empty* request,
                         Empty* response) override;
  grpc::Status UnaryCall(grpc::ServerContext* context,
                         const SimpleRequest* request,
                         SimpleResponse* response) override;
  grpc::Status StreamingOutputCall(
      grpc::ServerContext* context, const StreamingOutputCallRequest* request,
      grpc::ServerWriter<StreamingOutputCallResponse>* writer) override;
  grpc::Status StreamingInputCall(
      grpc::ServerContext* context,
      grpc::ServerReader<StreamingInputCallRequest>* reader,
      StreamingInputCallResponse* response) override;
  grpc::Status FullDuplexCall(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<StreamingOutputCallResponse,
                               StreamingOutputCallRequest>* stream) override;

  // Block until `count` request streams have begun, or were ended by a
  // cancellation. Return false after a timeout.
  bool AwaitBegun(int count) { return Await(begun_, count); }
  bool AwaitCancelled(int count) { return Await(cancelled_, count); }

 private:
  bool Await(const int& counter, int count);
  void NoteBegun();
  void NoteEnded(const grpc::ServerContext& context);

  std::mutex mu_;
  std::condition_variable changed_;
  int begun_ = 0;
  int cancelled_ = 0;
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_TEST_SERVICE_H_
