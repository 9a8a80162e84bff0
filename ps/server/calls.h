// The calls of workers, at a server or at a replicated shard.

#ifndef PENSTOCK_PS_SERVER_CALLS_H_
#define PENSTOCK_PS_SERVER_CALLS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/consistency/membership.h"
#include "ps/server/exchange.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// The training that a request belongs to; see ps.proto.
struct View {
  uint64_t run = 0;
  uint64_t epoch = 0;
};

// The calls of workers and readers. Server explains each call.
//
// Thread-safe. Each callback runs exactly once, without locks. A call with a
// callback returns a ticket for Cancel(). The callback may run before the call
// returns.
class Calls {
 public:
  using JoinCallback = std::function<void(absl::StatusOr<Exchange::Joined>)>;
  using PushCallback = Exchange::PushCallback;
  using PullCallback = Exchange::PullCallback;

  virtual ~Calls() = default;

  virtual uint64_t StartJoin(const View& view, const WorkerId& worker,
                             JoinCallback callback) = 0;
  virtual absl::Status Heartbeat(uint64_t run, const WorkerId& worker) = 0;
  virtual void Leave(const WorkerId& worker, uint64_t run) = 0;
  virtual void Lost(const WorkerId& worker, uint64_t run) = 0;
  virtual uint64_t Push(const View& view, const WorkerId& worker,
                        uint64_t clock, const tensor::Bundle& gradients,
                        PushCallback callback, bool will_help) = 0;
  virtual uint64_t Pull(const View& view, const Exchange::PullSpec& spec,
                        PullCallback callback) = 0;
  virtual void Help() = 0;
  virtual void Cancel(uint64_t ticket) = 0;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_CALLS_H_
