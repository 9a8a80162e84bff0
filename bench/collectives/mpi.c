// Measures the operations of an MPI library in the same form as collectives.cc,
// for compare.py. Bazel does not build this file: compare.py
// compiles it with the wrapper of each library, such as mpicc.openmpi.
//
// With -DPENSTOCK_CCL and ccl.cc, measures oneCCL instead.
//
// usage: mpirun -n 2 mpi LIBRARY OPERATION,... BYTES,... [fresh]
//
// With "fresh", each rank writes its input before each repetition.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The same values as in collectives.cc.
enum { kSmallRounds = 2000, kFewestRounds = 10 };
static const long long kBytesInAll = 512LL << 20;

static int fresh;

static int CompareTimes(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static int Is(const char* a, const char* b) { return strcmp(a, b) == 0; }

#ifdef PENSTOCK_CCL
enum { kThreads = MPI_THREAD_MULTIPLE };
void BeginCcl(void);
void EndCcl(void);
// Returns 0 if the operation is unknown.
int RunOnce(const char* operation, float* in, float* out, int count);
#else
enum { kThreads = MPI_THREAD_SINGLE };
static void BeginCcl(void) {}
static void EndCcl(void) {}

// `in` and `out` have `count` elements for each rank. Returns 0 if the
// operation is unknown.
static int RunOnce(const char* operation, float* in, float* out, int count) {
  const MPI_Comm all = MPI_COMM_WORLD;
  if (Is(operation, "all_reduce")) {
    MPI_Allreduce(MPI_IN_PLACE, in, count, MPI_FLOAT, MPI_MAX, all);
  } else if (Is(operation, "broadcast")) {
    MPI_Bcast(in, count, MPI_FLOAT, 0, all);
  } else if (Is(operation, "reduce")) {
    MPI_Reduce(in, out, count, MPI_FLOAT, MPI_MAX, 0, all);
  } else if (Is(operation, "reduce_scatter")) {
    MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_MAX, all);
  } else if (Is(operation, "all_gather")) {
    MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, all);
  } else if (Is(operation, "gather")) {
    MPI_Gather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, all);
  } else if (Is(operation, "scatter")) {
    MPI_Scatter(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, all);
  } else if (Is(operation, "all_to_all")) {
    MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, all);
  } else if (Is(operation, "barrier")) {
    MPI_Barrier(all);
  } else {
    return 0;
  }
  return 1;
}
#endif

static int RoundsOf(long long bytes) {
  const long long rounds = kBytesInAll / (bytes > 0 ? bytes : 1);
  if (rounds < kFewestRounds) return kFewestRounds;
  return rounds > kSmallRounds ? kSmallRounds : (int)rounds;
}

static float* NewOnes(size_t count) {
  float* const ones = malloc(count > 0 ? count * sizeof(float) : 1);
  if (ones == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (size_t i = 0; i < count; ++i) ones[i] = 1;
  return ones;
}

// Writes the input of an operation on all ranks.
static void Write(const char* operation, float* in, int count, int ranks,
                  float value) {
  const int has_blocks = Is(operation, "reduce_scatter") ||
                         Is(operation, "all_to_all") ||
                         Is(operation, "scatter");
  const size_t size = (size_t)count * (has_blocks ? ranks : 1);
  for (size_t i = 0; i < size; ++i) in[i] = value;
  MPI_Barrier(MPI_COMM_WORLD);
}

static void Measure(const char* library, const char* operation,
                    long long bytes) {
  static double times[kSmallRounds];
  const int count = (int)(bytes / (long long)sizeof(float));
  const int rounds = RoundsOf(bytes);
  int rank;
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  float* const in = NewOnes((size_t)count * ranks);
  float* const out = NewOnes((size_t)count * ranks);
  for (int round = -rounds / 10; round < rounds; ++round) {
    if (fresh) Write(operation, in, count, ranks, (float)round);
    const double begin = MPI_Wtime();
    if (!RunOnce(operation, in, out, count)) {
      fprintf(stderr, "%s has no operation %s\n", library, operation);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (round >= 0) times[round] = (MPI_Wtime() - begin) * 1e6;
  }
  free(in);
  free(out);
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
  if (argc < 4 || argc > 5) MPI_Abort(MPI_COMM_WORLD, 1);
  fresh = argc == 5 && Is(argv[4], "fresh");
  BeginCcl();
  char* operations = NULL;
  for (char* operation = strtok_r(argv[2], ",", &operations); operation != NULL;
       operation = strtok_r(NULL, ",", &operations)) {
    char* const sizes = strdup(argv[3]);
    char* rest = NULL;
    if (Is(operation, "barrier")) {
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
