// A server process.

#ifndef PENSTOCK_BENCH_RPC_SERVER_SERVER_ROLE_H_
#define PENSTOCK_BENCH_RPC_SERVER_SERVER_ROLE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/rpc/message/cell.h"
#include "bench/rpc/setup/child_process.h"
#include "bench/rpc/setup/options.h"

namespace penstock {
namespace bench {

struct RemoteServer {
  std::string address;
  std::unique_ptr<ChildProcess> process;
};

// Starts a server process, and returns once the process serves. Waits at most
// ten seconds. Returns UNAVAILABLE, with the child's reason, if the process
// cannot serve.
absl::StatusOr<RemoteServer> StartServerProcess(const RunOptions& options,
                                                Transport transport, Api api);

// Runs a server process until the parent has finished. `options` have one
// transport and one API.
[[noreturn]] void RunServerRole(const RunOptions& options);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SERVER_SERVER_ROLE_H_
