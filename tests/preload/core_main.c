// core MODE: uses gRPC's core, like bindings of other languages.
//
//   threads   32 threads initialise gRPC simultaneously
//   forks     a forked child initialises gRPC, and then its parent does
//   dlopen    opens a library that only its own RUNPATH finds
//   cost      measures initialising and shutting down gRPC repeatedly
//
// Exits with 0 on success.

#include <dlfcn.h>
#if __has_include(<grpc/credentials.h>)
#include <grpc/credentials.h>  // later releases split grpc_security.h
#endif
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Returns true if a server, with or without Penstock, and a channel to it can
// be made.
static int UseGrpc(void) {
  grpc_init();
  // Reserves the port for this server. Otherwise the kernel may give one port
  // to two servers of the same user.
  grpc_arg alone = {.type = GRPC_ARG_INTEGER, .key = GRPC_ARG_ALLOW_REUSEPORT};
  const grpc_channel_args arguments = {1, &alone};
  grpc_server* server = grpc_server_create(&arguments, NULL);
  grpc_completion_queue* queue = grpc_completion_queue_create_for_next(NULL);
  grpc_server_register_completion_queue(server, queue, NULL);
  grpc_server_credentials* serving = grpc_insecure_server_credentials_create();
  const int port = grpc_server_add_http2_port(server, "127.0.0.1:0", serving);
  grpc_server_credentials_release(serving);
  if (port == 0) puts("no port");
  grpc_server_start(server);
  char target[64];
  snprintf(target, sizeof target, "127.0.0.1:%d", port);
  grpc_channel_credentials* credentials = grpc_insecure_credentials_create();
  grpc_channel* channel = grpc_channel_create(target, credentials, NULL);
  grpc_channel_credentials_release(credentials);
  grpc_connectivity_state state =
      grpc_channel_check_connectivity_state(channel, 1);
  // Tries again for a while. Occasionally the first attempt fails, in a stock
  // program as well.
  while (port != 0 && state != GRPC_CHANNEL_READY) {
    const gpr_timespec end = gpr_time_add(
        gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_seconds(20, GPR_TIMESPAN));
    grpc_channel_watch_connectivity_state(channel, state, end, queue, NULL);
    const grpc_event event = grpc_completion_queue_next(queue, end, NULL);
    if (event.type != GRPC_OP_COMPLETE || !event.success) break;
    state = grpc_channel_check_connectivity_state(channel, 1);
  }
  if (state != GRPC_CHANNEL_READY) printf("%s: state %d\n", target, state);
  grpc_channel_destroy(channel);
  grpc_server_shutdown_and_notify(server, queue, NULL);
  grpc_server_cancel_all_calls(server);
  grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
  grpc_server_destroy(server);
  grpc_completion_queue_shutdown(queue);
  while (grpc_completion_queue_next(queue, gpr_inf_future(GPR_CLOCK_REALTIME),
                                    NULL)
             .type != GRPC_QUEUE_SHUTDOWN) {
  }
  grpc_completion_queue_destroy(queue);
  grpc_shutdown();
  return state == GRPC_CHANNEL_READY;
}

static pthread_barrier_t barrier;

static void* UseInThread(void* worked) {
  pthread_barrier_wait(&barrier);
  if (UseGrpc()) atomic_fetch_add((atomic_int*)worked, 1);
  return NULL;
}

static int Threads(void) {
  enum { kThreads = 32 };
  pthread_barrier_init(&barrier, NULL, kThreads);
  pthread_t threads[kThreads];
  atomic_int worked = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, UseInThread, &worked);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return worked == kThreads;
}

static int Forks(void) {
  const pid_t child = fork();
  if (child == 0) exit(UseGrpc() ? 0 : 1);
  int status;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 && UseGrpc();
}

static int Dlopen(void) {
  void* library = dlopen("libonly_by_runpath.so", RTLD_NOW);
  if (library == NULL) printf("%s\n", dlerror());
  // Checks the error of dlopen(): dlopen() keeps its own, and the preloaded
  // library leaves none.
  if (dlopen("libis_nowhere.so", RTLD_NOW) != NULL) return 0;
  const char* error = dlerror();
  return library != NULL && error != NULL &&
         strstr(error, "libis_nowhere.so") != NULL && dlerror() == NULL &&
         dlopen(NULL, RTLD_NOW) != NULL;
}

static int Cost(void) {
  enum { kTimes = 2000000 };
  grpc_init();
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < kTimes; ++i) {
    grpc_slice_unref(grpc_slice_from_copied_buffer("key", 3));
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%.1f ns\n",
         ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) /
             kTimes);
  grpc_shutdown();
  return 1;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "threads") == 0) return !Threads();
  if (strcmp(mode, "forks") == 0) return !Forks();
  if (strcmp(mode, "dlopen") == 0) return !Dlopen();
  if (strcmp(mode, "cost") == 0) return !Cost();
  return 2;
}
