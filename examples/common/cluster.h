// Parameter servers and workers on this host, each a process of its own.

#ifndef PENSTOCK_EXAMPLES_COMMON_CLUSTER_H_
#define PENSTOCK_EXAMPLES_COMMON_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/common/process.h"

namespace penstock::examples {

// A line that a worker has printed. An error ends the training.
using OnLine =
    std::function<absl::Status(unsigned rank, const std::string& line)>;

// No process outlives the object. Not thread-safe.
class Cluster {
 public:
  // Starts servers, each on a free port, which wait for so many workers.
  // Returns once all listen.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(unsigned servers,
                                                        unsigned workers);

  const std::vector<std::string>& addresses() const { return addresses_; }

  // Runs the workers to their end: `program`, with `flags` and --servers and
  // --rank. Returns INTERNAL, which names it, if a process fails or dies, and
  // DEADLINE_EXCEEDED if nobody prints a line for a minute.
  absl::Status RunWorkers(const std::string& program,
                          const std::vector<std::string>& flags,
                          const OnLine& on_line);

  // Ends the servers in good order.
  absl::Status Stop();

 private:
  explicit Cluster(unsigned workers) : workers_(workers) {}

  const unsigned workers_;
  std::vector<Process> servers_;
  std::vector<std::string> addresses_;
};

}  // namespace penstock::examples

#endif  // PENSTOCK_EXAMPLES_COMMON_CLUSTER_H_
