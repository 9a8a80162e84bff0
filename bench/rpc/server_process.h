// A server in a process of its own: this program, started again.
//
// Parent and child share one socket pair, the child's standard input. The child
// writes one line, its address, and serves until the pair reports end of file:
// a parent that dies in any way ends its servers.

#ifndef PENSTOCK_BENCH_RPC_SERVER_PROCESS_H_
#define PENSTOCK_BENCH_RPC_SERVER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/rpc/cell.h"

namespace penstock {
namespace bench {

// The parent's side. Not thread-safe. Destruction asks the child to end, kills
// it if it has not ended within two seconds, and reaps it.
class ServerProcess {
 public:
  // Returns when the child serves; waits at most ten seconds. UNAVAILABLE with
  // the child's reason if it cannot serve.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(
      Transport transport, Api api, int threads);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& address() const { return address_; }

 private:
  ServerProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  absl::Status ReadAddress();

  const pid_t pid_;
  const int socket_;
  std::string address_;
};

// The child's side: serves until the parent is done with it, or gone. Returns
// the exit code.
int RunServerRole(Transport transport, Api api, int threads);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SERVER_PROCESS_H_
