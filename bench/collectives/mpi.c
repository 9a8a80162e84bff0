// Measures all_reduce and broadcast of an MPI library in the same form as
// collectives.cc, for compare.py. Bazel does not build this file: compare.py
// compiles it with the wrapper of each library, such as mpicc.openmpi.
//
// With -DPENSTOCK_CCL and ccl.cc, measures oneCCL instead.
//
// usage: mpirun -n 2 mpi LIBRARY OPERATION,... BYTES,...

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The same values as in collectives.cc.
enum { kSmallRounds = 2000, kFewestRounds = 10 };
static const long long kBytesInAll = 512LL << 20;

static int CompareTimes(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

#ifdef PENSTOCK_CCL
enum { kThreads = MPI_THREAD_MULTIPLE };
void BeginCcl(void);
void EndCcl(void);
void RunOnce(const char* operation, float* data, int count);
#else
enum { kThreads = MPI_THREAD_SINGLE };
static void BeginCcl(void) {}
static void EndCcl(void) {}

static void RunOnce(const char* operation, float* data, int count) {
  if (strcmp(operation, "all_reduce") == 0) {
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_MAX,
                  MPI_COMM_WORLD);
  } else if (strcmp(operation, "broadcast") == 0) {
    MPI_Bcast(data, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
}
#endif

static int RoundsOf(long long bytes) {
  const long long rounds = kBytesInAll / (bytes > 0 ? bytes : 1);
  if (rounds < kFewestRounds) return kFewestRounds;
  return rounds > kSmallRounds ? kSmallRounds : (int)rounds;
}

static void Measure(const char* library, const char* operation,
                    long long bytes) {
  static double times[kSmallRounds];
  const int count = (int)(bytes / (long long)sizeof(float));
  const int rounds = RoundsOf(bytes);
  float* const data = malloc(bytes > 0 ? (size_t)bytes : 1);
  if (data == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int i = 0; i < count; ++i) data[i] = 1;
  for (int round = -rounds / 10; round < rounds; ++round) {
    const double begin = MPI_Wtime();
    RunOnce(operation, data, count);
    if (round >= 0) times[round] = (MPI_Wtime() - begin) * 1e6;
  }
  free(data);
  int rank;
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank != 0) return;
  qsort(times, rounds, sizeof times[0], CompareTimes);
  printf(
      "{\"library\": \"%s\", \"operation\": \"%s\", \"ranks\": %d, "
      "\"bytes\": %lld, \"p50_us\": %.2f, \"p99_us\": %.2f, "
      "\"rounds\": %d}\n",
      library, operation, ranks, bytes, times[rounds / 2],
      times[(long long)rounds * 99 / 100], rounds);
  fflush(stdout);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, kThreads, &provided);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 1);
  BeginCcl();
  char* operations = NULL;
  for (char* operation = strtok_r(argv[2], ",", &operations); operation != NULL;
       operation = strtok_r(NULL, ",", &operations)) {
    char* const sizes = strdup(argv[3]);
    char* rest = NULL;
    if (strcmp(operation, "barrier") == 0) {
      Measure(argv[1], operation, 0);
    } else {
      for (char* size = strtok_r(sizes, ",", &rest); size != NULL;
           size = strtok_r(NULL, ",", &rest)) {
        Measure(argv[1], operation, atoll(size));
      }
    }
    free(sizes);
  }
  EndCcl();
  MPI_Finalize();
  return 0;
}
