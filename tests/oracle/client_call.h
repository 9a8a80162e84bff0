// A call of any kind by any of gRPC's client APIs, behind one interface that
// blocks.

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

// One thread may write while another reads; Finish() comes after both. A call
// whose kind has one request begins with it.
class ClientCall {
 public:
  virtual ~ClientCall() = default;
  // False: the call is over. Options that say "last" half-close.
  virtual bool Write(const grpc::ByteBuffer& message,
                     grpc::WriteOptions options) = 0;
  virtual bool WritesDone() = 0;
  // False: no more comes.
  virtual bool Read(grpc::ByteBuffer* message) = 0;
  // Blocks until the server's initial metadata has come, where the API can.
  virtual void AwaitInitialMetadata() {}
  // After Read() has said false.
  virtual grpc::Status Finish() = 0;
};

// What a call is made with; all outlive it.
struct ClientParts {
  std::shared_ptr<grpc::Channel> channel;
  grpc::CompletionQueue* queue;  // of a ClientPump
  std::string method;
  grpc::ClientContext* context;
  bool corked;  // as the context says
};

std::unique_ptr<ClientCall> NewSyncCall(Kind kind, const ClientParts& parts);
std::unique_ptr<ClientCall> NewAsyncCall(Kind kind, const ClientParts& parts,
                                         bool generic);
std::unique_ptr<ClientCall> NewCallbackCall(Kind kind, const ClientParts& parts,
                                            bool generic);
std::unique_ptr<ClientCall> NewCall(const Plan& plan, const ClientParts& parts);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_CLIENT_CALL_H_
