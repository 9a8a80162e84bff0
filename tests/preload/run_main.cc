// run STUB LIBRARY PROGRAM [ARGUMENT...]: like `penstock run`.

#include <iostream>

#include "preload/launch.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  namespace preload = penstock::preload;
  const auto fail = [](const absl::Status& status) {
    std::cerr << "run: " << status.message() << std::endl;
    return preload::ExitCodeOf(status);
  };
  auto launch = preload::Plan({argv + 3, argv + argc},
                              preload::Libraries{argv[1], argv[2]},
                              preload::OwnEnvironment(), {});
  if (!launch.ok()) return fail(launch.status());
  if (!launch->why_not.empty()) std::cerr << launch->why_not << std::endl;
  return fail(preload::Exec(*launch));
}
