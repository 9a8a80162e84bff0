#include "cli/self.h"

#include <signal.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace penstock::cli {
namespace {

// The disposition of SIGPIPE before IgnoreSigpipe().
struct sigaction found_sigpipe = {};

}  // namespace

std::string OwnFile() {
  std::error_code error;
  const std::filesystem::path file =
      std::filesystem::read_symlink("/proc/self/exe", error);
  if (!file.empty()) return file.string();
  // Uses the name of the started file if there is no /proc, as in a chroot.
  const auto* const name = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (name == nullptr) return "";
  return std::filesystem::canonical(name, error).string();
}

absl::Status BecomeCompanion(const Companion& companion,
                             const std::string& called,
                             const std::vector<std::string>& arguments,
                             const preload::Environment& environment) {
  const std::string folder =
      std::filesystem::path(OwnFile()).parent_path().string();
  const std::string places[] = {
      // The path next to /usr/bin/penstock.
      absl::StrCat(folder, "/../libexec/penstock/", companion.name),
      // The path next to bazel-bin/cli/penstock.
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
      absl::StrCat("a program that this command runs is missing: ", places[0],
                   ", ", places[1], " (bazel build //", companion.target, ")"));
}

void IgnoreSigpipe() {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &found_sigpipe);
}

absl::Status BecomeProgram(const preload::Launch& launch) {
  // Restores SIGPIPE, because a program inherits ignored signals.
  struct sigaction own = {};
  sigaction(SIGPIPE, &found_sigpipe, &own);
  absl::Status status = preload::Exec(launch);
  sigaction(SIGPIPE, &own, nullptr);
  return status;
}

}  // namespace penstock::cli
