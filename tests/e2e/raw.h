// Messages with exact sizes: a generic service that echoes messages, and a
// stream of a generic stub.

#ifndef PENSTOCK_TESTS_E2E_RAW_H_
#define PENSTOCK_TESTS_E2E_RAW_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/types/optional.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"

namespace penstock::e2e {

// Returns `size` bytes that do not repeat at any distance at which a transport
// may divide messages. Different seeds give different bytes.
std::string Pattern(size_t size, unsigned seed = 1);

grpc::ByteBuffer ToBuffer(const std::string& bytes);
std::string ToBytes(const grpc::ByteBuffer& buffer);

// Serves every method: echoes each message, and ends with OK.
class RawEchoService final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
};

constexpr char kRawMethod[] = "/penstock.e2e.Raw/Echo";

// One call of a generic stub. The functions block. Use the object on one
// thread, and call Finish() before destroying it.
class RawStream {
 public:
  // Starts a call. `context` must outlive the stream.
  RawStream(const std::shared_ptr<grpc::Channel>& channel,
            grpc::ClientContext* context,
            const std::string& method = kRawMethod);
  ~RawStream();

  bool Write(const std::string& bytes) { return Write(ToBuffer(bytes)); }
  bool Write(const grpc::ByteBuffer& message);
  bool WritesDone();
  absl::optional<std::string> Read();
  grpc::Status Finish();

 private:
  // Waits for the outstanding operation.
  bool Await();

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_RAW_H_
