// penstock: one command to inspect, try and measure. See docs/cli.md.

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/program.h"
#include "cli/self.h"
#include "grpc/support/log.h"
#include "transport/base/openssl_at_exit.h"

namespace {

// Opens missing standard descriptors. Otherwise a socket would get their
// number, and output would go to the peer. Writing to the opened descriptors
// fails, as it should.
void FillStandardDescriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) == -1) (void)open("/dev/null", O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  penstock::base::KeepOpenSslAtExit();
  FillStandardDescriptors();
  penstock::cli::IgnoreSigpipe();
  const penstock::cli::Environment environment =
      penstock::cli::ProcessEnvironment();
  // Logs warnings only, because the command's own output contains the
  // transport's information.
  setenv("PENSTOCK_LOG", "warning", /*replace=*/0);
  if (environment.count("GRPC_VERBOSITY") == 0) {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
  penstock::cli::Output out(STDOUT_FILENO);
  penstock::cli::Program program(penstock::cli::AllCommands());
  return program.Run(argc, argv, {&out, environment});
}
