#include "cli/self.h"

#include <signal.h>

#include <filesystem>
#include <system_error>

namespace penstock::cli {

std::string OwnFile() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

absl::Status BecomeProgram(const preload::Launch& launch) {
  // main() ignores it, and a program would inherit that.
  signal(SIGPIPE, SIG_DFL);
  const absl::Status status = preload::Exec(launch);
  signal(SIGPIPE, SIG_IGN);
  return status;
}

}  // namespace penstock::cli
