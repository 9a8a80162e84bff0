#include "preload/launch.h"

#include <elf.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "preload/check_program.h"
#include "preload/find_program.h"
#include "transport/base/status_util.h"

namespace penstock::preload {
namespace {

constexpr char kStub[] = "libpenstock-preload.so";
constexpr char kPreload[] = "LD_PRELOAD";

#if defined(__x86_64__)
constexpr char kMultiarch[] = "x86_64-linux-gnu";
#else
constexpr char kMultiarch[] = "aarch64-linux-gnu";
#endif

std::string Get(const Environment& environment, const std::string& name,
                const std::string& otherwise = "") {
  const auto found = environment.find(name);
  return found == environment.end() ? otherwise : found->second;
}

// Returns an error if the loader cannot be given these paths: LD_PRELOAD cannot
// contain a blank or a colon.
absl::Status CheckLibraries(const absl::StatusOr<Libraries>& libraries) {
  if (!libraries.ok()) return libraries.status();
  if (libraries->stub.find_first_of(" :\t\n$") != std::string::npos) {
    return absl::FailedPreconditionError(absl::StrCat(
        libraries->stub,
        " cannot be preloaded: its path has a blank, a colon or a $"));
  }
  return absl::OkStatus();
}

// Returns true for an ELF program or library for any processor.
bool IsElf(const std::string& file) {
  char begin[SELFMAG] = "";
  std::ifstream(file, std::ios::binary).read(begin, sizeof begin);
  return absl::string_view(begin, sizeof begin) ==
         absl::string_view(ELFMAG, SELFMAG);
}

void Preload(const Libraries& libraries, Environment* environment) {
  std::string& preload = (*environment)[kPreload];
  for (absl::string_view entry :
       absl::StrSplit(preload, absl::ByAnyChar(": "))) {
    if (entry == libraries.stub) return;
  }
  absl::StrAppend(&preload, preload.empty() ? "" : ":", libraries.stub);
  if (!libraries.library.empty()) {
    environment->emplace("PENSTOCK_LIBRARY", libraries.library);
  }
}

}  // namespace

Environment OwnEnvironment() {
  Environment own;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    own.insert(absl::StrSplit(*entry, absl::MaxSplits('=', 1)));
  }
  return own;
}

absl::StatusOr<Libraries> FindLibraries(const std::string& self) {
  const std::string folder = self.substr(0, self.rfind('/'));
  const Libraries places[] = {
      // The stub of an installation, next to /usr/bin/penstock. The stub finds
      // the library itself.
      {absl::StrCat(folder, "/../lib/", kMultiarch, "/penstock/", kStub), ""},
      // The files of a build, next to bazel-bin/cli/penstock.
      {absl::StrCat(folder, "/../preload/", kStub),
       absl::StrCat(folder, "/../penstock/libpenstock.so.0")},
  };
  std::vector<std::string> looked;
  for (const Libraries& place : places) {
    if (access(place.stub.c_str(), R_OK) == 0) return place;
    looked.push_back(place.stub);
  }
  return absl::NotFoundError(absl::StrCat(
      "the library to preload does not exist: ", absl::StrJoin(looked, ", ")));
}

absl::StatusOr<Launch> Plan(const std::vector<std::string>& arguments,
                            const absl::StatusOr<Libraries>& libraries,
                            Environment environment,
                            const Environment& settings) {
  // Searches as execvp() does.
  const std::string path = Get(environment, "PATH", "/bin:/usr/bin");
  absl::StatusOr<std::string> file = FindProgram(arguments[0], path);
  if (!file.ok()) return file.status();
  for (const auto& setting : settings) {
    environment[setting.first] = setting.second;
  }
  Launch launch{*std::move(file), arguments, std::move(environment), ""};
  absl::Status status = CheckProgram(launch.file, path);
  if (status.ok()) status = CheckLibraries(libraries);
  if (status.ok()) {
    Preload(*libraries, &launch.environment);
    return launch;
  }
  launch.why_not = std::string(status.message());
  if (Get(launch.environment, "PENSTOCK_POLICY") == "require") {
    return absl::FailedPreconditionError(
        absl::StrCat("Penstock is required but not used: ", launch.why_not));
  }
  return launch;
}

absl::Status Exec(const Launch& launch) {
  std::vector<char*> arguments;
  for (const std::string& argument : launch.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  std::vector<std::string> entries;
  for (const auto& entry : launch.environment) {
    entries.push_back(absl::StrCat(entry.first, "=", entry.second));
  }
  std::vector<char*> environment;
  for (const std::string& entry : entries) {
    environment.push_back(const_cast<char*>(entry.c_str()));
  }
  environment.push_back(nullptr);
  execve(launch.file.c_str(), arguments.data(), environment.data());
  int error = errno;
  if (error == ENOEXEC && !IsElf(launch.file)) {
    // Runs a file without "#!" by a shell. The file's name has a slash, so PATH
    // is not searched again.
    execvpe(launch.file.c_str(), arguments.data(), environment.data());
    error = errno;
  }
  if (error == ENOEXEC) {
    return absl::FailedPreconditionError(absl::StrCat(
        "run ", launch.file, ": it is for another processor, or damaged"));
  }
  if (error == ENOENT) {
    return absl::NotFoundError(
        absl::StrCat("run ", launch.file, ": its interpreter does not exist"));
  }
  return base::ErrnoStatus(error, absl::StrCat("run ", launch.file));
}

int ExitCodeOf(const absl::Status& status) {
  return absl::IsNotFound(status) ? 127 : 126;
}

}  // namespace penstock::preload
