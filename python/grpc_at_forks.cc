#include "python/grpc_at_forks.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"
#include "python/errors.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// The state of this process. The GIL guards all members.
bool is_in_use = false;   // at the latest fork
bool is_parents = false;  // in this process
pid_t forking_process = 0;

// Records if gRPC is in use. For this, gRPC locks its own lock, which is safe
// here, because the holder of that lock never waits for the GIL. A handler of
// pthread_atfork() would run with other locks held.
void BeforeFork() {
  is_in_use = is_parents || grpc_is_initialized() != 0;
  forking_process = getpid();
}

void InChild() { is_parents = is_in_use; }

}  // namespace

void WatchForks() {
  py::module_::import("os").attr("register_at_fork")(
      py::arg("before") = py::cpp_function(&BeforeFork),
      py::arg("after_in_child") = py::cpp_function(&InChild));
}

void CheckGrpc(const std::string& name) {
  if (!is_parents) return;
  Throw(absl::FailedPreconditionError(absl::StrCat(
      name, ": gRPC was in use in process ", forking_process,
      " when this one was forked from that, and does not work here: start this "
      "process by subprocess or multiprocessing's \"spawn\", or fork before "
      "the first client and server")));
}

}  // namespace penstock::python
