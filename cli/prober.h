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

// What `penstock serve` answers: it returns the bytes that it gets.
constexpr char kEchoMethod[] = "/penstock.Ping/Echo";
// Longer ones would keep too much memory of a server that strangers reach.
constexpr size_t kMaxPayload = size_t{256} << 20;

// What the server has that can be called without leaving a trace.
enum class Answer {
  kEcho,    // kEchoMethod: the payload goes there and comes back
  kHealth,  // gRPC's health service: the payload goes there, in a field that
            // the server does not know
  kStatus,  // a status only, such as UNIMPLEMENTED, before the payload is read
};

// Calls one server. Not thread-safe. Ctrl-C ends a call (interrupt.h).
class Prober {
 public:
  Prober(std::shared_ptr<grpc::Channel> channel, absl::Duration timeout);

  // Connects, and finds out what there is to call. Returns what went wrong if
  // the server gives no answer at all.
  grpc::Status Find();

  Answer answer() const { return answer_; }
  // "/penstock.Ping/Echo", or what a server of another kind answers.
  std::string Describe() const;

  // Makes one call with `bytes` of payload (with Answer::kStatus: none). Sets
  // `took`: from the call until its answer was compared with what was expected,
  // with every byte of an echo. Returns an error if there is none, or another.
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
