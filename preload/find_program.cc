#include "preload/find_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock::preload {
namespace {

absl::Status Try(const std::string& file) {
  struct stat status;
  if (stat(file.c_str(), &status) != 0) {
    return absl::NotFoundError(absl::StrCat(file, ": no such program"));
  }
  if (!S_ISREG(status.st_mode) || access(file.c_str(), X_OK) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(file, ": not a program that may be executed"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::string& path) {
  if (name.find('/') != name.npos) {
    const absl::Status status = Try(name);
    if (!status.ok()) return status;
    return name;
  }
  absl::Status first =
      absl::NotFoundError(absl::StrCat(name, ": no such program in PATH"));
  if (name.empty()) return first;
  for (const auto& folder : absl::StrSplit(path, ':')) {
    // An empty folder in PATH means the current folder.
    const std::string file =
        absl::StrCat(folder.empty() ? "." : folder, "/", name);
    const absl::Status status = Try(file);
    if (status.ok()) return file;
    if (!absl::IsNotFound(status) && absl::IsNotFound(first)) first = status;
  }
  return first;
}

}  // namespace penstock::preload
