// A blocking interface to calls of any kind at any of gRPC's server APIs, and
// the service that accepts them.

#ifndef PENSTOCK_TESTS_ORACLE_SERVER_CALL_H_
#define PENSTOCK_TESTS_ORACLE_SERVER_CALL_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "grpcpp/impl/call_op_set.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "tests/oracle/crew.h"
#include "tests/oracle/meeting.h"
#include "tests/oracle/program.h"

namespace penstock::oracle {

// A call. One thread may write while another reads; Finish() comes after both.
class ServerCall {
 public:
  virtual ~ServerCall() = default;
  virtual grpc::ServerContextBase* context() = 0;
  virtual void SendInitialMetadata() {}
  // Reads a message. Returns false if there are no more.
  virtual bool Read(grpc::ByteBuffer* message) = 0;
  // Writes a message. Returns false if the call has ended.
  virtual bool Write(const grpc::ByteBuffer& message,
                     grpc::WriteOptions options) = 0;
  // Ends the call. This is the last operation. The call may end only after
  // Finish() returns.
  virtual void Finish(const grpc::Status& status) = 0;
  // Writes and finishes in one operation, if the API can. If the method has one
  // response, sends the message only if the status is OK.
  virtual void WriteAndFinish(const grpc::ByteBuffer& message,
                              const grpc::Status& status) {
    Write(message, grpc::WriteOptions());
    Finish(status);
  }
  // Returns true if the call is cancelled within kPatience.
  virtual bool AwaitCancelled() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!context()->IsCancelled()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    return true;
  }
};

// The server's actions for each call, on the call's own thread.
using Handler = std::function<void(ServerCall*)>;

// A service with methods of each kind, for one API.
class ApiService {
 public:
  virtual ~ApiService() = default;
  virtual void Register(grpc::ServerBuilder* builder) = 0;
  // Starts serving. Call it after BuildAndStart().
  virtual void Begin() {}
  // Ends the service. Call it between the server's Shutdown() and its
  // destruction.
  virtual void End() {}
};

// Make a service for one API. `handler` and `crew` must outlive the service.
std::unique_ptr<ApiService> NewSyncService(const Handler* handler);
std::unique_ptr<ApiService> NewCallbackService(const Handler* handler,
                                               Crew* crew);
std::unique_ptr<ApiService> NewGenericCallbackService(const Handler* handler,
                                                      Crew* crew);
std::unique_ptr<ApiService> NewAsyncService(const Handler* handler, Crew* crew);
std::unique_ptr<ApiService> NewGenericAsyncService(const Handler* handler,
                                                   Crew* crew);

// Returns the name of a method: "/oracle.Sync/Unary".
std::string MethodName(ServerApi api, Kind kind);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_SERVER_CALL_H_
