// penstock-run PROGRAM [ARGUMENT...]: `penstock run` without the other
// commands, for builds by CMake. PENSTOCK_STUB is the installed stub. A stub
// next to this program comes first.

#include <unistd.h>

#include <iostream>
#include <string>

#include "preload/launch.h"

namespace {

namespace preload = penstock::preload;

// Returns the stub of a build folder, or else the installed one. The stub finds
// the library next to itself.
preload::Libraries FindStub() {
  char self[4096] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) > 0) {
    const std::string program = self;
    const std::string beside =
        program.substr(0, program.rfind('/')) + "/libpenstock-preload.so";
    if (access(beside.c_str(), R_OK) == 0) return {beside, ""};
  }
  return {PENSTOCK_STUB, ""};
}

int Fail(const absl::Status& status) {
  std::cerr << "penstock-run: " << status.message() << std::endl;
  return preload::ExitCodeOf(status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    std::cerr << "usage: penstock-run PROGRAM [ARGUMENT...]" << std::endl;
    return 2;
  }
  auto launch = preload::Plan({argv + 1, argv + argc}, FindStub(),
                              preload::OwnEnvironment(), {});
  if (!launch.ok()) return Fail(launch.status());
  if (!launch->why_not.empty()) {
    std::cerr << "penstock-run: Penstock is not used: " << launch->why_not
              << std::endl;
  }
  return Fail(preload::Exec(*launch));
}
