#include "cli/self.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace penstock::cli {

std::string OwnFile() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

absl::Status BecomeCompanion(const Companion& companion,
                             const std::string& called,
                             const std::vector<std::string>& arguments,
                             const preload::Environment& environment) {
  const std::string folder =
      std::filesystem::path(OwnFile()).parent_path().string();
  const std::string places[] = {
      // /usr/bin/penstock
      absl::StrCat(folder, "/../libexec/penstock/", companion.name),
      // bazel-bin/cli/penstock
      absl::StrCat(folder, "/../", companion.target, "/", companion.name),
  };
  for (const std::string& place : places) {
    if (access(place.c_str(), X_OK) != 0) continue;
    preload::Launch launch{place, {called}, environment, ""};
    launch.arguments.insert(launch.arguments.end(), arguments.begin(),
                            arguments.end());
    return BecomeProgram(launch);
  }
  return absl::NotFoundError(
      absl::StrCat("what it runs is not there: ", places[0], ", ", places[1],
                   " (bazel build //", companion.target, ")"));
}

absl::Status BecomeProgram(const preload::Launch& launch) {
  // main() ignores it, and a program would inherit that.
  signal(SIGPIPE, SIG_DFL);
  absl::Status status = preload::Exec(launch);
  signal(SIGPIPE, SIG_IGN);
  return status;
}

}  // namespace penstock::cli
