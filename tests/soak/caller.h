// The client's side of the soak test: makes sequential calls.

#ifndef PENSTOCK_TESTS_SOAK_CALLER_H_
#define PENSTOCK_TESTS_SOAK_CALLER_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "tests/soak/plan.h"
#include "tests/soak/soak.grpc.pb.h"

namespace penstock::soak {

// Makes calls. Use this object on one thread.
class Caller {
 public:
  explicit Caller(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(Soak::NewStub(channel)) {}
  ~Caller();

  // Makes the call and checks the results. Returns the error, or an empty
  // string.
  std::string Make(const Plan& plan);

 private:
  // The common state of all kinds of calls.
  struct Call;

  void MakeUnary(Call* call);
  void MakeUpload(Call* call);
  void MakeDownload(Call* call);
  void MakeChat(Call* call);
  grpc::Status Unary(Call* call, const Order& order, Chunk* response);

  const std::unique_ptr<Soak::Stub> stub_;
  grpc::CompletionQueue queue_;
};

}  // namespace penstock::soak

#endif  // PENSTOCK_TESTS_SOAK_CALLER_H_
