// The operations of oneCCL for mpi.c, which compare.py compiles with
// -DPENSTOCK_CCL. MPI starts the processes, and carries the address of rank 0.

#include <mpi.h>

#include <array>
#include <cstring>
#include <memory>
#include <oneapi/ccl.hpp>

namespace {

std::unique_ptr<ccl::communicator> communicator;

}  // namespace

extern "C" void BeginCcl() {
  ccl::init();
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  ccl::shared_ptr_class<ccl::kvs> store;
  ccl::kvs::address_type address = {};
  if (rank == 0) {
    store = ccl::create_main_kvs();
    address = store->get_address();
  }
  MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0,
            MPI_COMM_WORLD);
  if (rank != 0) store = ccl::create_kvs(address);
  communicator = std::make_unique<ccl::communicator>(
      ccl::create_communicator(ranks, rank, store));
}

extern "C" void EndCcl() { communicator.reset(); }

extern "C" int RunOnce(const char* operation, float* in, float* /*out*/,
                       int count) {
  const auto size = static_cast<size_t>(count);
  if (std::strcmp(operation, "all_reduce") == 0) {
    ccl::allreduce(in, in, size, ccl::reduction::max, *communicator).wait();
  } else if (std::strcmp(operation, "broadcast") == 0) {
    ccl::broadcast(in, size, 0, *communicator).wait();
  } else if (std::strcmp(operation, "barrier") == 0) {
    ccl::barrier(*communicator).wait();
  } else {
    return 0;
  }
  return 1;
}
