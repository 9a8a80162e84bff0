// penstock: one command to inspect, try and measure. See docs/cli.md.

#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/program.h"
#include "cli/self.h"
#include "grpc/support/log.h"
#include "transport/base/openssl_at_exit.h"
#include "transport/base/program_start.h"

int main(int argc, char** argv) {
  penstock::base::PrepareProgram("penstock");
  penstock::base::KeepOpenSslAtExit();
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
