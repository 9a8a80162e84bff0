// Reads the variables of a training run without taking part in it.

#ifndef PENSTOCK_PS_READER_H_
#define PENSTOCK_PS_READER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "ps/fanout.h"
#include "ps/placement.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// A reader, such as an evaluator, is not a member: no barrier waits for it, and
// no server counts it as lost. Servers answer from a snapshot. The next step
// does not wait until a reply is sent; it copies what the reply still uses.
//
// Not thread-safe.
class Reader {
 public:
  // Takes `servers` and `variables` as Worker::Options has them.
  Reader(std::vector<std::shared_ptr<grpc::Channel>> servers,
         std::vector<VariableSpec> variables);

  struct Pulled {
    uint64_t version;          // the lowest among the servers
    tensor::Bundle variables;  // in the order given to the constructor
  };
  // Returns the variables once every server has applied `min_version` steps. A
  // server that is ahead answers with what it has, so while training goes on,
  // variables of different servers may be some steps apart.
  //
  // Returns DEADLINE_EXCEEDED after `timeout`, also if a server could not be
  // reached until then, and FAILED_PRECONDITION if a variable is missing or its
  // type or shape is not the expected one.
  absl::StatusOr<Pulled> Pull(uint64_t min_version, absl::Duration timeout);

  struct Progress {
    bool initialized;       // at every server
    uint64_t version;       // the lowest
    uint32_t live_workers;  // the highest
  };
  // Returns the servers' progress at once, without waiting for a step. Returns
  // DEADLINE_EXCEEDED as Pull() does.
  absl::StatusOr<Progress> Describe(absl::Duration timeout);

 private:
  const std::vector<VariableSpec> variables_;
  Fanout calls_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_READER_H_
