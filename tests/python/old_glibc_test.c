/* Tests the wait that replaces pthread_cond_clockwait() before glibc 2.30. */

#include "tools/manylinux/old_glibc.c"

#include <stdio.h>

#define CHECK(condition)                                      \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      abort();                                                \
    }                                                         \
  } while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int is_set = 0;

static struct timespec Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now;
}

static struct timespec After(long seconds, long nanoseconds) {
  struct timespec time = Plus(Now(), nanoseconds);
  time.tv_sec += seconds;
  return time;
}

static int HasPassed(struct timespec time) {
  const struct timespec now = Now();
  return now.tv_sec > time.tv_sec ||
         (now.tv_sec == time.tv_sec && now.tv_nsec >= time.tv_nsec);
}

static int WaitUntil(struct timespec deadline) {
  return pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &deadline);
}

static void TimesOut(long seconds, long nanoseconds) {
  const struct timespec deadline = After(seconds, nanoseconds);
  int error = 0;
  while (error == 0) error = WaitUntil(deadline);
  CHECK(error == ETIMEDOUT);
  CHECK(HasPassed(deadline));
}

static void PastDeadlineReturnsAtOnce(void) {
  const struct timespec none = {0, 0};
  CHECK(WaitUntil(none) == ETIMEDOUT);
  CHECK(WaitUntil(Now()) == ETIMEDOUT);
}

static void* Set(void* unused) {
  pthread_mutex_lock(&mutex);
  is_set = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return unused;
}

static void NotifyWakes(void) {
  const struct timespec deadline = After(600, 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, Set, NULL) == 0);
  while (!is_set) CHECK(WaitUntil(deadline) == 0);
  pthread_join(thread, NULL);
}

int main(void) {
  own_wait = NULL; /* as with an old glibc */
  pthread_mutex_lock(&mutex);
  TimesOut(0, 20 * 1000 * 1000);
  TimesOut(1, 100 * 1000 * 1000); /* in two waits */
  PastDeadlineReturnsAtOnce();
  NotifyWakes();
  pthread_mutex_unlock(&mutex);
  return 0;
}
