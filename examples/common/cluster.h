// Parameter servers and workers on this host, each a process of its own.

#ifndef PENSTOCK_EXAMPLES_COMMON_CLUSTER_H_
#define PENSTOCK_EXAMPLES_COMMON_CLUSTER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/common/process.h"
#include "examples/common/progress.h"

namespace penstock::examples {

// No process outlives the object. Not thread-safe.
class Cluster {
 public:
  // Starts servers, each on a free port, which wait for so many workers.
  // Returns once all listen.
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(unsigned servers,
                                                        unsigned workers);

  const std::vector<std::string>& addresses() const { return addresses_; }

  // Runs the workers to their end: `program`, with `flags` and --servers and
  // --rank. Its lines are those of a ProgressPrinter; `on_progress` is called
  // with what rank 0 says. Returns INTERNAL, which names it, if a process fails
  // or dies, and DEADLINE_EXCEEDED if nobody prints a line for a minute.
  absl::Status RunWorkers(const std::string& program,
                          const std::vector<std::string>& flags,
                          const OnProgress& on_progress);

  // Ends the servers in good order.
  absl::Status Stop();

 private:
  explicit Cluster(unsigned workers) : workers_(workers) {}
  absl::StatusOr<std::vector<Process>> StartWorkers(
      const std::string& program, const std::vector<std::string>& flags) const;

  const unsigned workers_;
  std::vector<Process> servers_;
  std::vector<std::string> addresses_;
};

}  // namespace penstock::examples

#endif  // PENSTOCK_EXAMPLES_COMMON_CLUSTER_H_
