// A child process that runs this program in another role: as a cell's client or
// server.
//
// Parent and child share a socket pair, which is the child's standard input.
// The child sends lines over the socket, and reads Go() signals. At the end of
// file, the child ends. Therefore children end with their parent, even if the
// parent is killed.

#ifndef PENSTOCK_BENCH_RPC_SETUP_CHILD_PROCESS_H_
#define PENSTOCK_BENCH_RPC_SETUP_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace bench {

// The parent's end of a child process. The destructor asks the child to end,
// kills it after ten seconds, and reaps it. Not thread-safe.
class ChildProcess {
 public:
  // Starts a child with this program and `flags`.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      std::vector<std::string> flags);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Returns the child's next line, without its line feed. Returns
  // DEADLINE_EXCEEDED after `timeout_ms` (no timeout if negative), and ABORTED
  // if the child has ended.
  absl::StatusOr<std::string> ReadLine(int timeout_ms);

  // Lets the child's AwaitGo() return true. Does not block.
  void Go();

  pid_t pid() const { return pid_; }

 private:
  ChildProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  const pid_t pid_;
  const int socket_;
  std::string received_;  // not yet returned by ReadLine()
};

// Makes this process a child. Call it before the functions below. The kernel
// then kills this process when the parent dies, even if this process hangs.
// gRPC stays initialised.
void BecomeChild();

// Sends a line. Line feeds in `text` become blanks.
void SendLine(std::string text);

// Blocks until the parent calls Go(), and returns true. Returns false after a
// second; the caller should then call again.
bool AwaitGo();

// Blocks until the parent has finished with this child, or is gone.
void AwaitParent();

// Ends the process without gRPC's shutdown and without static destructors.
// After a large write, a thread of gRPC 1.51 polls for up to ten seconds (the
// backup poller of tcp_posix.cc), and grpc_shutdown() joins the thread.
[[noreturn]] void LeaveChild(int code);

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SETUP_CHILD_PROCESS_H_
