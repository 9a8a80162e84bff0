#include "preload/say.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int LeavesOutWarnings(void) {
  const char* level = secure_getenv("PENSTOCK_LOG");
  return level != NULL &&
         (strcmp(level, "error") == 0 || strcmp(level, "off") == 0);
}

// Returns true if a write neither blocks nor raises SIGPIPE.
static int HasRoom(void) {
  struct pollfd room = {STDERR_FILENO, POLLOUT, 0};
  return poll(&room, 1, 0) == 1 && room.revents == POLLOUT;
}

void Say(const char* format, ...) {
  if (LeavesOutWarnings() || !HasRoom()) return;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  struct tm parts;
  localtime_r(&now.tv_sec, &parts);
  char line[1024];
  size_t size = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &parts);
  size += snprintf(line + size, sizeof line - size,
                   ".%03ld warning penstock[%d]: ", now.tv_nsec / 1000000,
                   (int)getpid());
  va_list values;
  va_start(values, format);
  const int text =
      vsnprintf(line + size, sizeof line - size - 1, format, values);
  va_end(values);
  if (text < 0) return;
  size += text;
  if (size > sizeof line - 2) size = sizeof line - 2;  // truncated
  line[size] = '\n';
  // Ignores a failure, because there is no other place to report an error.
  if (write(STDERR_FILENO, line, size + 1) < 0) return;
}
