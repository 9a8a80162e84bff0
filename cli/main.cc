// penstock: one command to see, try and measure. docs/cli.md describes it.

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/program.h"
#include "cli/self.h"
#include "grpc/support/log.h"
#include "transport/base/openssl_at_exit.h"

namespace {

// Otherwise a socket would get the number, and what is printed would go to the
// peer. Writing to what is opened here fails, as it should.
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
  // The answer has what these would log.
  setenv("PENSTOCK_LOG", "warning", /*replace=*/0);
  if (environment.count("GRPC_VERBOSITY") == 0) {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
  penstock::cli::Output out(STDOUT_FILENO);
  penstock::cli::Program program(penstock::cli::AllCommands());
  return program.Run(argc, argv, {&out, environment});
}
