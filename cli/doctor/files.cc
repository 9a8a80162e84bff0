#include "cli/doctor/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "transport/base/printable.h"
#include "transport/base/status_util.h"
#include "transport/base/unique_fd.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxLineBytes = 200;

}  // namespace

std::string Files::At(absl::string_view path) const {
  return absl::StrCat(root_, path);
}

absl::StatusOr<std::string> Files::Read(absl::string_view path) const {
  const auto failed = [&](absl::string_view what) {
    return base::ErrnoStatus(errno, absl::StrCat(what, " ", path));
  };
  // Opens without blocking: opening a pipe would wait for a writer.
  const base::UniqueFd fd(
      open(At(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return failed("open");
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return failed("stat");
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not a regular file"));
  }
  std::string text(kMaxBytes, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(fd.get(), &text[size], text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("read");
    if (count == 0) break;
    size += count;
  }
  text.resize(size);
  return text;
}

std::string Files::Line(absl::string_view path) const {
  const absl::StatusOr<std::string> text = Read(path);
  if (!text.ok()) return "";
  absl::string_view line(*text);
  line = absl::StripAsciiWhitespace(line.substr(0, line.find('\n')));
  return base::Printable(line, kMaxLineBytes);
}

std::optional<uint64_t> Files::Number(absl::string_view path) const {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(Line(path), &number)) return std::nullopt;
  return number;
}

std::vector<std::string> Files::List(absl::string_view folder) const {
  std::vector<std::string> names;
  DIR* const open_folder = opendir(At(folder).c_str());
  if (open_folder == nullptr) return names;
  while (names.size() < kMaxEntries) {
    const dirent* const entry = readdir(open_folder);
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(open_folder);
  std::sort(names.begin(), names.end());
  return names;
}

bool Files::Exists(absl::string_view path) const {
  return access(At(path).c_str(), F_OK) == 0;
}

absl::Status Files::CanOpen(absl::string_view path) const {
  if (faccessat(AT_FDCWD, At(path).c_str(), R_OK | W_OK, AT_EACCESS) == 0) {
    return absl::OkStatus();
  }
  return base::ErrnoStatus(errno, absl::StrCat("open ", path));
}

std::string Files::LinkName(absl::string_view path) const {
  std::string target(kMaxLineBytes, '\0');
  const ssize_t size = readlink(At(path).c_str(), target.data(), target.size());
  if (size <= 0) return "";
  target.resize(size);
  return base::Printable(target.substr(target.rfind('/') + 1), kMaxLineBytes);
}

std::string ChosenWord(absl::string_view line) {
  const size_t begin = line.find('[');
  const size_t end = line.find(']', begin == line.npos ? 0 : begin);
  if (begin == line.npos || end == line.npos) return "";
  return std::string(line.substr(begin + 1, end - begin - 1));
}

}  // namespace penstock::cli
