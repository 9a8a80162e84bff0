// A call that a server answers later.

#ifndef PENSTOCK_PS_SERVICE_TICKET_REACTOR_H_
#define PENSTOCK_PS_SERVICE_TICKET_REACTOR_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "grpcpp/support/server_callback.h"
#include "ps/server/calls.h"

namespace penstock::ps {

// A reactor for a call that a server identifies by a ticket. `start` makes the
// server's call and returns the ticket. The call's callback must finish the
// reactor, which then deletes itself.
class TicketReactor : public grpc::ServerUnaryReactor {
 public:
  // Starts the call. gRPC gets this object after the constructor has returned,
  // so OnCancel() finds the ticket. The callback may run earlier, on another
  // thread; gRPC then delays Finish() until it has the object.
  TicketReactor(std::shared_ptr<Calls> server,
                absl::FunctionRef<uint64_t(TicketReactor*)> start)
      : server_(std::move(server)), ticket_(start(this)) {}

  void OnCancel() override { server_->Cancel(ticket_); }
  void OnDone() override { delete this; }
  // Returns true, so that gRPC runs the callbacks of this class on its own
  // thread. The callbacks are short. With few cores, waking another thread
  // would delay the reader of the answer.
  bool InternalInlineable() override { return true; }

 protected:
  const std::shared_ptr<Calls>& server() const { return server_; }

 private:
  const std::shared_ptr<Calls> server_;
  const uint64_t ticket_;
};

// A reactor for a push. After the answer, the reactor helps to apply the step
// of the push.
class PushReactor final : public TicketReactor {
 public:
  using TicketReactor::TicketReactor;

  void OnDone() override {
    const std::shared_ptr<Calls> to_help = server();
    TicketReactor::OnDone();
    to_help->Help();
  }
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_TICKET_REACTOR_H_
