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

// Reads files below a root, which tests replace by their own tree. Does not
// trust the files: for any content, returns in bounded time and memory, and
// never blocks on a pipe or a device.
class Files {
 public:
  // Caps the size of a file. Longer files are truncated. More than the size of
  // any probed file.
  static constexpr size_t kMaxBytes = 64 * 1024;
  // Caps how many directory entries a probe reads.
  static constexpr size_t kMaxEntries = 512;

  // Makes a reader; `root` is "" for this machine.
  explicit Files(std::string root = "") : root_(std::move(root)) {}

  // Returns the beginning of a regular file. The error names the file and the
  // cause.
  absl::StatusOr<std::string> Read(absl::string_view path) const;
  // Returns the first line, printable and without surrounding blanks. Empty if
  // the file cannot be read.
  std::string Line(absl::string_view path) const;
  // Returns the first line as a number, or nothing if the line is no number.
  std::optional<uint64_t> Number(absl::string_view path) const;
  // Returns the sorted names in a folder, without dot files. Empty if the
  // folder cannot be read. The names are raw: print them by base::Printable().
  std::vector<std::string> List(absl::string_view folder) const;
  bool Exists(absl::string_view path) const;
  // Returns OK if this process may open the file for reading and writing.
  absl::Status CanOpen(absl::string_view path) const;
  // Returns the last component of a symbolic link's target, or an empty string
  // if `path` is no symbolic link.
  std::string LinkName(absl::string_view path) const;

 private:
  std::string At(absl::string_view path) const;

  std::string root_;
};

// Returns the bracketed word of "always [madvise] never", or an empty string if
// there is none.
std::string ChosenWord(absl::string_view line);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_FILES_H_
