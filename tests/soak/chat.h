// A bidirectional stream through each of gRPC's client APIs.

#ifndef PENSTOCK_TESTS_SOAK_CHAT_H_
#define PENSTOCK_TESTS_SOAK_CHAT_H_

#include <memory>

#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/status.h"
#include "tests/soak/plan.h"
#include "tests/soak/soak.grpc.pb.h"

namespace penstock::soak {

// A stream. Each operation blocks; only one may be in progress. Finish() must
// be called last.
class ChatStream {
 public:
  virtual ~ChatStream() = default;
  virtual bool Write(const Order& order) = 0;
  virtual bool Read(Chunk* response) = 0;
  virtual bool WritesDone() = 0;
  virtual grpc::Status Finish() = 0;
};

// Starts the stream. Nobody else may use `queue` until the stream ends.
std::unique_ptr<ChatStream> StartChat(Api api, Soak::Stub* stub,
                                      grpc::ClientContext* context,
                                      grpc::CompletionQueue* queue);

}  // namespace penstock::soak

#endif  // PENSTOCK_TESTS_SOAK_CHAT_H_
