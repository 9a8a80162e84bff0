#include "transport/base/program_start.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "transport/base/address_space.h"

namespace penstock {
namespace base {
namespace {

// The line for an abort. Written before the handler is installed, because a
// signal handler may not allocate.
char abort_line[256];
size_t abort_line_bytes = 0;

void PrintAbortLine(int) {
  if (write(STDERR_FILENO, abort_line, abort_line_bytes) < 0) return;
}

void FillStandardDescriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) == -1) (void)open("/dev/null", O_RDONLY);
  }
}

void ExplainAborts(const char* name) {
  const std::string limit = AddressSpaceLimitText();
  if (limit.empty()) return;
  const std::string line = absl::StrCat(
      name, ": aborted, perhaps for lack of memory: ", limit, "\n");
  abort_line_bytes = line.copy(abort_line, sizeof abort_line);
  struct sigaction action = {};
  action.sa_handler = PrintAbortLine;
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGABRT, &action, nullptr);
}

}  // namespace

void PrepareProgram(const char* name) {
  FillStandardDescriptors();
  ExplainAborts(name);
}

}  // namespace base
}  // namespace penstock
