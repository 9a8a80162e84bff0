// A group of ranks as a Python object.

#ifndef PENSTOCK_PYTHON_COLLECTIVES_GROUP_H_
#define PENSTOCK_PYTHON_COLLECTIVES_GROUP_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "collectives/group.h"
#include "collectives/host/pool.h"
#include "python/collectives/pool_array.h"

namespace penstock::python {

// A group of ranks, for Python. Methods throw the exception of the group's
// error. Waits release the GIL. If a signal handler raises an exception on the
// main thread, as Ctrl-C's does, the wait and the group end.
//
// Call all methods with the GIL.
class GroupObject {
 public:
  // `pool` may be null.
  GroupObject(std::unique_ptr<collectives::Group> group,
              std::shared_ptr<collectives::Pool> pool);
  GroupObject(const GroupObject&) = delete;
  GroupObject& operator=(const GroupObject&) = delete;
  // Leaves the group, like Close(). Does nothing in the child of a fork,
  // because the group belongs to the parent.
  ~GroupObject();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::string Describe() const;

  // Runs a collective operation. `in` and `out` have Python's buffer protocol,
  // or are None where the operation has no such buffer on this rank. A
  // broadcast has only `out`. The count of elements follows from the sizes.
  // `op` is used only for reductions, and `root` only for operations with a
  // root.
  void Run(const std::string& operation, const std::string& op,
           const std::string& type, pybind11::handle in, pybind11::handle out,
           int root);
  void Send(const std::string& type, pybind11::handle data, int to,
            uint32_t tag);
  void Receive(const std::string& type, pybind11::handle data, int from,
               uint32_t tag);

  // Allocates memory that the other ranks of this host read in place. Returns
  // null if the group has no pool. Throws ResourceExhausted if the pool is
  // full.
  std::unique_ptr<PoolArray> Allocate(uint64_t bytes) const;

  // Ends all operations on all ranks.
  void Abort();
  // Leaves the group once no operation is running. Idempotent.
  void Close();

 private:
  using Operation = std::function<absl::Status(collectives::Group* group)>;

  // Returns the group. Throws FailedPrecondition after Close().
  std::shared_ptr<collectives::Group> Open() const;
  // Runs an operation after releasing the GIL.
  void RunUnlocked(const Operation& operation);

  const int rank_;
  const int ranks_;
  const uint32_t fork_count_;
  std::shared_ptr<collectives::Group> group_;  // null after Close()
  std::shared_ptr<collectives::Pool> pool_;    // null after Close(), too
};

// Lets RunUnlocked() recognise Python's main thread, on which it checks for
// signals. Call this function from the module, and in the child of a fork:
// there, the thread that forked is the main thread.
void NoteMainThread();

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_COLLECTIVES_GROUP_H_
