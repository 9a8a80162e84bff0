// This program, started again in a role of its own: as a cell's client or
// server.
//
// Parent and child share a socket pair, which is the child's standard input.
// The child sends lines over it. It reads Go()s, and the end of file, on which
// it ends. So children end with their parent, however it dies.

#ifndef PENSTOCK_BENCH_RPC_CHILD_PROCESS_H_
#define PENSTOCK_BENCH_RPC_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace bench {

// The parent's side. Its destructor asks the child to end, kills it if it has
// not ended within ten seconds, and reaps it. Not thread-safe.
class ChildProcess {
 public:
  // `flags` follow the program's name.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      std::vector<std::string> flags);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Returns the child's next line, without its line feed. Returns
  // DEADLINE_EXCEEDED after the time limit (no limit if negative), and ABORTED
  // if the child has ended.
  absl::StatusOr<std::string> ReadLine(int timeout_ms);

  // Lets the child go on that waits in AwaitGo(). Does not block.
  void Go();

  pid_t pid() const { return pid_; }

 private:
  ChildProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  const pid_t pid_;
  const int socket_;
  std::string received_;  // not yet returned as a line
};

// The child's side. Call BecomeChild() first. It makes the kernel kill this
// process when its parent dies, in case it hangs, and keeps gRPC initialised.
void BecomeChild();

// Sends a line; line feeds in `text` become blanks.
void SendLine(std::string text);

// Blocks until the parent calls Go(), or a second passes. Returns false then:
// call it again.
bool AwaitGo();

// Blocks until the parent is done with this child, or gone.
void AwaitParent();

// Ends the process without gRPC's shutdown and without static destructors.
// gRPC 1.51 has a thread poll for up to ten seconds after a large write (the
// backup poller of tcp_posix.cc), and grpc_shutdown() joins it.
[[noreturn]] void LeaveChild(int code);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_CHILD_PROCESS_H_
