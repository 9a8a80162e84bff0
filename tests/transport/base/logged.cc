#include "tests/transport/base/logged.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace {

constexpr unsigned int kPatienceSeconds = 60;

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t size;
       (size = pread(fd, buffer, sizeof buffer, text.size())) > 0;) {
    text.append(buffer, size);
  }
  return text;
}

}  // namespace

void RunWithStderr(int fd, const std::function<void()>& body) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(kPatienceSeconds);
    if (dup2(fd, STDERR_FILENO) < 0) _exit(1);
    body();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Returns the lines that `body` logs. Directs stderr to a file, because a pipe
// could fill up.
std::string LoggedBy(const std::function<void()>& body) {
  const base::UniqueFd file(memfd_create("stderr", MFD_CLOEXEC));
  // Sets O_APPEND, so that each write appends. The kernel does not lock the
  // position of a memfd. Without O_APPEND, two processes that write at once
  // could overwrite each other's lines.
  EXPECT_EQ(fcntl(file.get(), F_SETFL, O_APPEND), 0);
  RunWithStderr(file.get(), body);
  return ReadAll(file.get());
}

}  // namespace penstock
