// A call that a server answers when it can.

#ifndef PENSTOCK_PS_SERVICE_TICKET_REACTOR_H_
#define PENSTOCK_PS_SERVICE_TICKET_REACTOR_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "grpcpp/support/server_callback.h"
#include "ps/server/server.h"

namespace penstock::ps {

// `start` makes the server's call and returns its ticket; the call's callback
// finishes the reactor, which then deletes itself.
class TicketReactor : public grpc::ServerUnaryReactor {
 public:
  // gRPC learns of this object when the constructor has returned, so OnCancel()
  // finds the ticket. The callback may run before that, on another thread; gRPC
  // then keeps the Finish() until it knows the object.
  TicketReactor(Server* server,
                absl::FunctionRef<uint64_t(TicketReactor*)> start)
      : server_(server), ticket_(start(this)) {}

  void OnCancel() override { server_->Cancel(ticket_); }
  void OnDone() override { delete this; }
  // What is here takes little time, and a thread that wakes for it takes a core
  // from who waits for the answer, if there are few.
  bool InternalInlineable() override { return true; }

 protected:
  Server* server() const { return server_; }

 private:
  Server* const server_;
  const uint64_t ticket_;
};

// A push: once it is answered, helps with its step.
class PushReactor final : public TicketReactor {
 public:
  using TicketReactor::TicketReactor;

  void OnDone() override {
    Server* const to_help = server();
    TicketReactor::OnDone();
    to_help->Help();
  }
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_TICKET_REACTOR_H_
