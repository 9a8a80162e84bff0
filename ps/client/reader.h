// Reads the values of a training without taking part.

#ifndef PENSTOCK_PS_CLIENT_READER_H_
#define PENSTOCK_PS_CLIENT_READER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ps/client/call_loop.h"
#include "ps/client/pull.h"
#include "ps/client/training_connection.h"
#include "ps/sparse/hash.h"

namespace penstock::ps {

// A reader of a training, such as an evaluator. A reader is not a member: no
// worker waits for a reader, and no server counts a reader as lost.
// Thread-safe, except for the destructor.
class Reader {
 public:
  explicit Reader(std::shared_ptr<const TrainingConnection> connection);

  // Starts a pull; see Worker::StartPull(). The servers answer independently.
  // During training, the values of two servers may be some steps apart.
  void StartPull(uint64_t step, const PullSpec& spec, absl::Duration timeout,
                 std::function<void(absl::StatusOr<Pulled>)> done);
  // Blocks until the values are here. Must not be called in a callback. Returns
  // DEADLINE_EXCEEDED after `timeout`, even if a server is unreachable.
  absl::StatusOr<Pulled> Pull(uint64_t step, const PullSpec& spec,
                              absl::Duration timeout);

  const TrainingConnection& connection() const { return *connection_; }

 private:
  const std::shared_ptr<const TrainingConnection> connection_;
  const sparse::HashKey hash_;
  CallLoop loop_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_READER_H_
