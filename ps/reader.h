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

// For evaluators: never a member, so that no barrier waits for it or counts it,
// and its end is nobody's loss. Servers answer from a snapshot, which a step
// that is being applied meanwhile copies rather than waits for.
//
// Thread safety: none.
class Reader {
 public:
  // `servers` and `variables` as in Worker::Options.
  Reader(std::vector<std::shared_ptr<grpc::Channel>> servers,
         std::vector<VariableSpec> variables);

  struct Pulled {
    uint64_t version;          // the lowest among the servers
    tensor::Bundle variables;  // in the order given to the constructor
  };
  // Once every server has applied `min_version` steps. DEADLINE_EXCEEDED when
  // `timeout` ends first, or where a server cannot be reached until then.
  // Servers that are ahead answer with what they have: beside a running
  // training variables of different servers may differ by a step.
  absl::StatusOr<Pulled> Pull(uint64_t min_version, absl::Duration timeout);

  struct Progress {
    bool initialized;       // at every server
    uint64_t version;       // the lowest
    uint32_t live_workers;  // the highest
  };
  // At once, whatever the step. Errors as Pull.
  absl::StatusOr<Progress> Describe(absl::Duration timeout);

 private:
  const std::vector<VariableSpec> variables_;
  Fanout calls_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_READER_H_
