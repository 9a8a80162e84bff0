// The processes of a contender: a server and its worker, or the plain program.

#ifndef PENSTOCK_BENCH_PS_TRAINING_ROLES_H_
#define PENSTOCK_BENCH_PS_TRAINING_ROLES_H_

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"
#include "bench/ps/training/workload.h"
#include "bench/rpc/message/cell.h"

namespace penstock::bench {

// Each process sends its parent a line when it is ready (child_process.h). A
// worker and the plain program then answer each Go() by ToLine() of a round's
// Figures. A line with this prefix reports an error, and is the last one.
inline constexpr absl::string_view kErrorPrefix = "error: ";

struct RoleOptions {
  std::string workload;
  Sizes sizes;
  double seconds = 1;  // of a round
  std::string address;
  pid_t server = 0;
};

// Runs the server process. The first line to the parent is the address of the
// server.
[[noreturn]] void RunServer(Transport transport);
[[noreturn]] void RunWorker(Transport transport, const RoleOptions& options);
// Runs the plain program. Each step reads gradients, reads and writes values,
// and reads the results, with as many threads as a server. Measures only the
// figure of the step.
[[noreturn]] void RunPlain(const RoleOptions& options);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_PS_TRAINING_ROLES_H_
