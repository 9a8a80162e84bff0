#include "tests/ps/simulation/idle_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

// The number of consecutive readings in which all threads must be idle. A
// thread that was just woken may still look idle in one reading.
constexpr int kReadings = 2;
// The pause between two readings in microseconds. Leaves the processors to the
// threads that Await() waits for.
constexpr useconds_t kPauseMicroseconds = 20;

}  // namespace

IdleThreads::~IdleThreads() {
  for (const auto& [thread, file] : files_) close(file);
}

void IdleThreads::Await() {
  int idle = 0;
  while (idle < kReadings) {
    idle = AllWait() ? idle + 1 : 0;
    if (idle == 0) usleep(kPauseMicroseconds);
  }
}

bool IdleThreads::AllWait() {
  const auto self = static_cast<int>(syscall(SYS_gettid));
  DIR* const folder = opendir("/proc/self/task");
  bool all_wait = true;
  while (const dirent* const entry = readdir(folder)) {
    const int thread = std::atoi(entry->d_name);
    if (thread > 0 && thread != self && !Waits(thread)) all_wait = false;
  }
  closedir(folder);
  return all_wait;
}

// Returns true if a thread waits, by its stat file. The state follows the last
// parenthesis, which ends the thread's name.
bool IdleThreads::Waits(int thread) {
  auto file = files_.find(thread);
  if (file == files_.end()) {
    const int opened = open(
        absl::StrCat("/proc/self/task/", thread, "/stat").c_str(), O_RDONLY);
    if (opened < 0) return true;  // the thread has ended
    file = files_.emplace(thread, opened).first;
  }
  char text[256];
  const ssize_t size = pread(file->second, text, sizeof(text) - 1, 0);
  if (size <= 0) {  // the thread has ended, or its number was reused
    close(file->second);
    files_.erase(file);
    return false;
  }
  text[size] = '\0';
  const char* const name_end = strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'S';
}

}  // namespace penstock::ps
