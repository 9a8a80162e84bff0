// Measures the time of a call to any gRPC server.

#ifndef PENSTOCK_CLI_PROBER_H_
#define PENSTOCK_CLI_PROBER_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

namespace penstock::cli {

// The method of `penstock serve`, which returns the payload.
constexpr char kEchoMethod[] = "/penstock.Ping/Echo";
// Limits the payload, in bytes. Larger payloads would take too much memory of a
// server that anybody can reach.
constexpr size_t kMaxPayload = size_t{256} << 20;

// The methods of a server that can be called without side effects.
enum class Answer {
  kEcho,    // kEchoMethod: the payload goes to the server and back
  kHealth,  // gRPC's health service; the payload is in an unknown field
  kStatus,  // a status such as UNIMPLEMENTED, sent before the payload is read
};

// Calls one server. Not thread-safe. Ctrl-C ends a call (interrupt.h).
class Prober {
 public:
  Prober(std::shared_ptr<grpc::Channel> channel, absl::Duration timeout);

  // Connects, and finds a method to call. Returns the error if the server does
  // not answer at all.
  grpc::Status Find();

  Answer answer() const { return answer_; }
  // Returns "/penstock.Ping/Echo", or a description of another kind of answer.
  std::string Describe() const;

  // Makes one call with `bytes` of payload, or without payload for
  // Answer::kStatus. Sets `took` to the time until the answer has been checked.
  // The check compares every byte of an echo. Returns an error if there is no
  // answer, or a wrong one.
  grpc::Status Ping(size_t bytes, absl::Duration* took);

  grpc::Channel* channel() const { return channel_.get(); }

 private:
  bool IsConnected() const;
  grpc::Status Call(const char* method, const grpc::ByteBuffer& request,
                    grpc::ByteBuffer* reply);

  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  const absl::Duration timeout_;
  Answer answer_ = Answer::kStatus;
  grpc::StatusCode expected_ = grpc::StatusCode::OK;
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PROBER_H_
