// Passes the streams that the peer opens to gRPC, or refuses them.

#ifndef PENSTOCK_TRANSPORT_GRPC_STREAM_ACCEPTOR_H_
#define PENSTOCK_TRANSPORT_GRPC_STREAM_ACCEPTOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/core/lib/iomgr/closure.h"
#include "src/core/lib/transport/transport.h"
#include "transport/grpc/internal/grpc_abi.h"
#include "transport/session/session.h"

namespace penstock {
namespace core {

// Keeps the streams that clients have opened until gRPC accepts them. gRPC
// accepts a stream by a function that it gives to the transport. gRPC withdraws
// this function by a transport operation, and frees the function's `argument`
// in the operation's on_consumed. Therefore on_consumed waits until no thread
// runs the function. Call all functions under the transport's lock, in an
// ExecCtx.
class StreamAcceptor {
 public:
  // The function with which gRPC accepts streams.
  struct Function {
    void (*function)(void*, grpc_transport*, const void*) = nullptr;
    void* argument = nullptr;
  };
  // The streams to give to gRPC, and the function for it.
  struct Batch {
    Function accept;
    std::vector<uint32_t> streams;
  };

  // Refers to `session`, which must outlive this object.
  explicit StreamAcceptor(session::Session* session) : session_(session) {}

  // Sets gRPC's function. Null withdraws the function: the waiting streams and
  // all later ones are refused.
  void SetFunction(const Function& accept);
  // Runs a transport operation's on_consumed, as soon as no thread runs gRPC's
  // function. `closure` may be null.
  void Consume(grpc_closure* closure);

  // Records a stream that the peer has opened, or refuses the stream.
  void OnOpened(uint32_t stream);
  // Returns true if streams wait and gRPC accepts streams.
  bool HasBatch() const {
    return !opened_.empty() && accept_.function != nullptr;
  }
  // Returns the waiting streams. Call Give() for each stream without the lock,
  // because gRPC accepts a stream by calling the transport. Then call OnGiven()
  // for the stream.
  Batch TakeBatch();
  static void Give(grpc_transport* transport, const Function& accept,
                   uint32_t stream);
  // Refuses the stream if gRPC has not accepted it.
  void OnGiven(uint32_t stream);

  // Returns true if no stream waits and gRPC is accepting none.
  bool idle() const { return opened_.empty() && accepting_ == 0; }
  // Returns the first waiting stream, or 0.
  uint32_t first_opened() const {
    return opened_.empty() ? 0 : opened_.front();
  }

 private:
  void Refuse(uint32_t stream);

  session::Session* const session_;
  Function accept_;
  bool taken_back_ = false;
  std::vector<uint32_t> opened_;  // streams that gRPC has not accepted yet
  size_t accepting_ = 0;          // the number of streams given and not OnGiven
  std::vector<grpc_closure*> consumed_;  // to run once accepting_ is 0
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_STREAM_ACCEPTOR_H_
