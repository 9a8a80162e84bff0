// The files in which Linux describes a machine: /proc, /sys, /dev.

#ifndef PENSTOCK_CLI_DOCTOR_FILES_H_
#define PENSTOCK_CLI_DOCTOR_FILES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::cli {

// Reads files below a root, which tests replace by a tree of their own. Does
// not trust what it reads: whatever the files hold, it returns in bounded time
// and memory, and never blocks on a pipe or a device.
class Files {
 public:
  // More than any file that a probe looks at; a longer one is cut.
  static constexpr size_t kMaxBytes = 64 * 1024;
  // More than a folder has whose entries a probe looks at.
  static constexpr size_t kMaxEntries = 512;

  // `root` is "" for this machine.
  explicit Files(std::string root = "") : root_(std::move(root)) {}

  // Returns a regular file's beginning. The error says which file, and why.
  absl::StatusOr<std::string> Read(absl::string_view path) const;
  // Returns the first line, made printable, without blanks around it. Empty if
  // the file cannot be read.
  std::string Line(absl::string_view path) const;
  // Returns the first line as a number; nothing if it is none.
  std::optional<uint64_t> Number(absl::string_view path) const;
  // Returns the names in a folder, sorted, without dot files; none if it cannot
  // be read. The names are as they are: print them by base::Printable().
  std::vector<std::string> List(absl::string_view folder) const;
  bool Exists(absl::string_view path) const;
  // Returns whether this process may open a file for reading and writing.
  absl::Status CanOpen(absl::string_view path) const;
  // Returns the last part of what a symbolic link names; empty if it is none.
  std::string LinkName(absl::string_view path) const;

 private:
  std::string At(absl::string_view path) const;

  std::string root_;
};

// Returns the word in brackets of "always [madvise] never"; empty if there is
// none.
std::string ChosenWord(absl::string_view line);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_FILES_H_
