/* Functions of glibc that are younger than the release that the wheel is for.
 * tools/python_module links them into the module. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

/* glibc 2.33 replaced these by functions of the plain names. The first argument
 * is the version of struct stat on x86-64. */
enum { kStatVersion = 1 };
int __xstat(int version, const char* path, void* result);
int __fxstat(int version, int fd, void* result);
int __lxstat(int version, const char* path, void* result);

int stat(const char* path, void* result) {
  return __xstat(kStatVersion, path, result);
}

int lstat(const char* path, void* result) {
  return __lxstat(kStatVersion, path, result);
}

int fstat(int fd, void* result) { return __fxstat(kStatVersion, fd, result); }

/* The same as fstat() on x86-64. */
int fstat64(int fd, void* result) { return __fxstat(kStatVersion, fd, result); }

/* Since 2.32. Says that the process may have several threads. */
char __libc_single_threaded = 0;

/* Since 2.36. */
unsigned int arc4random(void) {
  unsigned int number = 0;
  while (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
    if (errno != EINTR) abort();
  }
  return number;
}

static const long kSecond = 1000000000;

static struct timespec Plus(struct timespec time, long nanoseconds) {
  time.tv_nsec += nanoseconds;
  time.tv_sec += time.tv_nsec / kSecond;
  time.tv_nsec %= kSecond;
  return time;
}

/* Waits by the system's clock. Waits at most a second of that clock, and
 * returns 0, as after a spurious wake-up, if the deadline is later. If somebody
 * sets the clock back meanwhile, the wait takes longer by as much. */
static int WaitBriefly(pthread_cond_t* condition, pthread_mutex_t* mutex,
                       clockid_t clock, const struct timespec* deadline) {
  struct timespec now;
  clock_gettime(clock, &now);
  long left = kSecond;
  if (deadline->tv_sec <= now.tv_sec + 1) {
    left = (deadline->tv_sec - now.tv_sec) * kSecond + deadline->tv_nsec -
           now.tv_nsec;
  }
  if (left <= 0) return ETIMEDOUT;
  const int is_long = left >= kSecond;
  clock_gettime(CLOCK_REALTIME, &now);
  const struct timespec until = Plus(now, is_long ? kSecond : left);
  const int error = pthread_cond_timedwait(condition, mutex, &until);
  return error == ETIMEDOUT && is_long ? 0 : error;
}

typedef int Wait(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                 const struct timespec*);

/* The glibc's own function. NULL before 2.30. */
static Wait* own_wait = NULL;

/* Searches once, because dlsym() takes a lock, and callers hold a mutex. */
__attribute__((constructor)) static void FindOwnWait(void) {
  own_wait = (Wait*)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
}

/* Since 2.30. Calls glibc's own function if there is one. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           clockid_t clock, const struct timespec* deadline) {
  Wait* const wait = own_wait != NULL ? own_wait : WaitBriefly;
  return wait(condition, mutex, clock, deadline);
}
