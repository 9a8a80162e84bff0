#include "collectives/host/thread_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "transport/base/unique_fd.h"

namespace penstock::collectives {
namespace {

// The index of the start time, counted from the thread's state. In
// proc_pid_stat(5), the state is word 3 and the start time is word 22.
constexpr size_t kStarted = 22 - 3;

}  // namespace

absl::optional<ThreadState> ParseThreadState(absl::string_view text) {
  // Skips the second word, the name in parentheses, which may contain any
  // characters.
  const size_t name_end = text.rfind(')');
  if (name_end == absl::string_view::npos) return absl::nullopt;
  const std::vector<absl::string_view> words =
      absl::StrSplit(text.substr(name_end + 1), ' ', absl::SkipEmpty());
  ThreadState state;
  if (words.size() <= kStarted || words[0].size() != 1 ||
      !absl::SimpleAtoi(words[kStarted], &state.started)) {
    return absl::nullopt;
  }
  state.letter = words[0][0];
  return state;
}

absl::optional<ThreadState> StateOfThread(uint64_t thread) {
  const std::string path = absl::StrCat("/proc/", thread, "/stat");
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return absl::nullopt;
  char text[1024];
  const ssize_t size = read(file.get(), text, sizeof text);
  if (size <= 0) return absl::nullopt;
  return ParseThreadState({text, static_cast<size_t>(size)});
}

}  // namespace penstock::collectives
