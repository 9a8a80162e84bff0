// The processes of a contender: a server and its worker, or the plain program.

#ifndef PENSTOCK_BENCH_PS_TRAINING_ROLES_H_
#define PENSTOCK_BENCH_PS_TRAINING_ROLES_H_

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"
#include "bench/ps/training/workload.h"
#include "bench/rpc/cell.h"

namespace penstock::bench {

// Each serves its parent (see child_process.h): sends a line when it is ready.
// A worker and the plain program then answer each Go() by ToLine() of a round's
// Figures. A line that begins so says why there will be no other.
inline constexpr absl::string_view kErrorPrefix = "error: ";

struct RoleOptions {
  std::string workload;
  Sizes sizes;
  double seconds = 1;  // of a round
  std::string address;
  pid_t server = 0;
};

// Says the address that it serves at.
[[noreturn]] void RunServer(Transport transport);
[[noreturn]] void RunWorker(Transport transport, const RoleOptions& options);
// Reads gradients, reads and writes values, and reads what has come of it, with
// as many threads as a server has. Knows no other figure than the step's.
[[noreturn]] void RunPlain(const RoleOptions& options);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_PS_TRAINING_ROLES_H_
