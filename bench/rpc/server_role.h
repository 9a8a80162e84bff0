// The server in its own process.

#ifndef PENSTOCK_BENCH_RPC_SERVER_ROLE_H_
#define PENSTOCK_BENCH_RPC_SERVER_ROLE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/rpc/cell.h"
#include "bench/rpc/child_process.h"
#include "bench/rpc/options.h"

namespace penstock {
namespace bench {

struct RemoteServer {
  std::string address;
  std::unique_ptr<ChildProcess> process;
};

// Starts a server process, and returns when it serves. Waits at most ten
// seconds. Returns UNAVAILABLE, with the child's reason, if it cannot serve.
absl::StatusOr<RemoteServer> StartServerProcess(const RunOptions& options,
                                                Transport transport, Api api);

// That process's main(). Serves until its parent is done with it. `options`
// have one transport and one API.
[[noreturn]] void RunServerRole(const RunOptions& options);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SERVER_ROLE_H_
