// A blocking interface to calls of any kind by any of gRPC's client APIs.

#ifndef PENSTOCK_TESTS_ORACLE_CLIENT_CALL_H_
#define PENSTOCK_TESTS_ORACLE_CLIENT_CALL_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/call_op_set.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "tests/oracle/program.h"
#include "tests/oracle/tag.h"

namespace penstock::oracle {

// A call. One thread may write while another reads; Finish() comes after both.
// A call of a kind with one request starts with that request.
class ClientCall {
 public:
  virtual ~ClientCall() = default;
  // Writes a message. Returns false if the call has ended. Options with "last"
  // also half-close.
  virtual bool Write(const grpc::ByteBuffer& message,
                     grpc::WriteOptions options) = 0;
  virtual bool WritesDone() = 0;
  // Reads a message. Returns false if there are no more.
  virtual bool Read(grpc::ByteBuffer* message) = 0;
  // Blocks until the server's initial metadata has come. Does nothing if the
  // API cannot wait for it.
  virtual void AwaitInitialMetadata() {}
  // Returns the status. Call it after Read() has returned false.
  virtual grpc::Status Finish() = 0;
};

// The parameters of a call, which must outlive the call.
struct ClientParts {
  std::shared_ptr<grpc::Channel> channel;
  grpc::CompletionQueue* queue;  // the queue of a ClientPump
  std::string method;
  grpc::ClientContext* context;
  bool corked;  // as in `context`
};

std::unique_ptr<ClientCall> NewSyncCall(Kind kind, const ClientParts& parts);
std::unique_ptr<ClientCall> NewAsyncCall(Kind kind, const ClientParts& parts,
                                         bool generic);
std::unique_ptr<ClientCall> NewCallbackCall(Kind kind, const ClientParts& parts,
                                            bool generic);
std::unique_ptr<ClientCall> NewCall(const Plan& plan, const ClientParts& parts);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_CLIENT_CALL_H_
