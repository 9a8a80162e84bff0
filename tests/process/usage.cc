#include "tests/process/usage.h"

#include <dirent.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::process {
namespace {

std::string Text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns a field of /proc/PID/status, in bytes.
uint64_t StatusBytes(pid_t pid, absl::string_view field) {
  std::istringstream lines(Text(absl::StrCat("/proc/", pid, "/status")));
  std::string name;
  uint64_t kib;
  for (std::string line; std::getline(lines, line);) {
    if (!absl::StartsWith(line, field)) continue;
    if (std::istringstream(line) >> name >> kib) return kib * 1024;
  }
  return 0;
}

}  // namespace

uint64_t ResidentBytes(pid_t pid) { return StatusBytes(pid, "VmRSS:"); }

uint64_t PeakBytes(pid_t pid) { return StatusBytes(pid, "VmHWM:"); }

void ForgetPeak(pid_t pid) {
  std::ofstream(absl::StrCat("/proc/", pid, "/clear_refs")) << "5";
}

double CpuSeconds(pid_t pid) {
  const std::string text = Text(absl::StrCat("/proc/", pid, "/stat"));
  // The fields after the name, which may contain blanks. Field 12 is the user
  // time, and field 13 the system time.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int Descriptors(pid_t pid) {
  int count = 0;
  DIR* const folder = opendir(absl::StrCat("/proc/", pid, "/fd").c_str());
  if (folder == nullptr) return 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

}  // namespace penstock::process
