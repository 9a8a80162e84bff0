#include "python/collectives/group.h"

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "collectives/interruption.h"
#include "python/collectives/bindings.h"
#include "python/collectives/view.h"
#include "python/collectives/words.h"
#include "python/errors.h"
#include "python/gil.h"
#include "tensor_service/dtype.h"
#include "transport/progress/fork_count.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using collectives::Group;
using collectives::Interruptible;
using collectives::Operation;
using collectives::ReduceOp;
using tensor::DType;

unsigned long main_thread = 0;  // NOLINT: Python's type

bool IsMainThread() { return PyThread_get_thread_ident() == main_thread; }

// The numbers of blocks of one operation on this rank. A rank without a buffer
// has 0.
struct Blocks {
  size_t in;
  size_t out;
};

Blocks BlocksOf(Operation operation, size_t ranks, bool is_root) {
  switch (operation) {
    case Operation::kAllReduce:
      return {1, 1};
    case Operation::kReduce:
      return {1, is_root ? size_t{1} : 0};
    case Operation::kReduceScatter:
      return {ranks, 1};
    case Operation::kAllGather:
      return {1, ranks};
    case Operation::kGather:
      return {1, is_root ? ranks : 0};
    case Operation::kScatter:
      return {is_root ? ranks : 0, 1};
    case Operation::kBroadcast:
      return {0, 1};
    case Operation::kAllToAll:
      return {ranks, ranks};
    case Operation::kBarrier:
      break;
  }
  return {0, 0};
}

absl::Status CheckView(const char* title, const View& view, size_t bytes) {
  if (view.size() == bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the ", title, " has ", view.size(), " bytes, expected ", bytes));
}

// Returns the number of elements of a block. Returns an error if the sizes of
// the views do not fit `blocks`.
absl::StatusOr<int64_t> CountOf(const Blocks& blocks, DType type,
                                const View& in, const View& out) {
  const size_t all = blocks.in > 0 ? blocks.in : blocks.out;
  if (all == 0) return 0;
  const size_t bytes = (blocks.in > 0 ? in : out).size() / all;
  const size_t count = bytes / tensor::ElementSize(type);
  const size_t used = count * tensor::ElementSize(type);
  absl::Status status = CheckView("input", in, used * blocks.in);
  if (status.ok()) status = CheckView("output", out, used * blocks.out);
  if (!status.ok()) return status;
  return static_cast<int64_t>(count);
}

// The arguments of Group's functions.
struct Arguments {
  Operation operation;
  ReduceOp op;
  DType type;
  const void* in;
  void* out;
  int64_t count;
  int root;
};

absl::Status Call(Group* group, const Arguments& a) {
  switch (a.operation) {
    case Operation::kAllReduce:
      return group->AllReduce(a.op, a.type, a.in, a.out, a.count);
    case Operation::kReduce:
      return group->Reduce(a.op, a.type, a.in, a.out, a.count, a.root);
    case Operation::kReduceScatter:
      return group->ReduceScatter(a.op, a.type, a.in, a.out, a.count);
    case Operation::kAllGather:
      return group->AllGather(a.type, a.in, a.out, a.count);
    case Operation::kGather:
      return group->Gather(a.type, a.in, a.out, a.count, a.root);
    case Operation::kScatter:
      return group->Scatter(a.type, a.in, a.out, a.count, a.root);
    case Operation::kBroadcast:
      return group->Broadcast(a.type, a.out, a.count, a.root);
    case Operation::kAllToAll:
      return group->AllToAll(a.type, a.in, a.out, a.count);
    case Operation::kBarrier:
      break;
  }
  return group->Barrier();
}

}  // namespace

void NoteMainThread() {
  main_thread = py::module_::import("threading")
                    .attr("main_thread")()
                    .attr("ident")
                    .cast<unsigned long>();  // NOLINT: Python's type
}

GroupObject::GroupObject(std::unique_ptr<Group> group,
                         std::shared_ptr<collectives::Pool> pool)
    : rank_(group->rank()),
      ranks_(group->ranks()),
      fork_count_(progress::ForkCount()),
      group_(std::move(group)),
      pool_(std::move(pool)) {}

GroupObject::~GroupObject() {
  if (group_ == nullptr) return;
  if (progress::ForkCount() != fork_count_) {
    (void)new std::shared_ptr<Group>(std::move(group_));
    return;
  }
  Close();
}

std::shared_ptr<Group> GroupObject::Open() const {
  if (group_ == nullptr) {
    Throw(absl::FailedPreconditionError("the group is closed"));
  }
  return group_;
}

void GroupObject::RunUnlocked(const Operation& operation) {
  std::shared_ptr<Group> group = Open();
  absl::Status status;
  {
    Unlocked unlocked;
    const Interruptible interruptible(IsMainThread() ? &IsInterrupted
                                                     : nullptr);
    status = operation(group.get());
    group.reset();  // may be the last one, which waits for peers
  }
  ThrowIfRaised();
  if (!status.ok()) Throw(status);
}

std::string GroupObject::Describe() const {
  std::shared_ptr<Group> group = Open();
  Unlocked unlocked;
  std::string text = group->Describe();
  group.reset();
  return text;
}

void GroupObject::Run(const std::string& operation, const std::string& op,
                      const std::string& type, py::handle in, py::handle out,
                      int root) {
  Arguments arguments = {};
  arguments.operation = ValueOf(ParseOperation(operation));
  arguments.op = ValueOf(ParseReduceOp(op));
  arguments.type = ValueOf(ParseType(type));
  arguments.root = root;
  const bool is_root = root == rank_;
  // Requires writable memory, except for the root of a broadcast, which only
  // reads.
  const bool writes =
      arguments.operation != collectives::Operation::kBroadcast || !is_root;
  const View from(in, /*writable=*/false);
  const View to(out, writes);
  arguments.in = from.data();
  arguments.out = to.data();
  arguments.count = ValueOf(CountOf(
      BlocksOf(arguments.operation, static_cast<size_t>(ranks_), is_root),
      arguments.type, from, to));
  RunUnlocked([&arguments](Group* group) { return Call(group, arguments); });
}

void GroupObject::Send(const std::string& type, py::handle data, int to,
                       uint32_t tag) {
  const DType dtype = ValueOf(ParseType(type));
  const View view(data, /*writable=*/false);
  const auto count =
      static_cast<int64_t>(view.size() / tensor::ElementSize(dtype));
  RunUnlocked([&](Group* group) {
    return group->Send(dtype, view.data(), count, to, tag);
  });
}

void GroupObject::Receive(const std::string& type, py::handle data, int from,
                          uint32_t tag) {
  const DType dtype = ValueOf(ParseType(type));
  const View view(data, /*writable=*/true);
  const auto count =
      static_cast<int64_t>(view.size() / tensor::ElementSize(dtype));
  RunUnlocked([&](Group* group) {
    return group->Receive(dtype, view.data(), count, from, tag);
  });
}

std::unique_ptr<PoolArray> GroupObject::Allocate(uint64_t bytes) const {
  (void)Open();
  if (pool_ == nullptr) return nullptr;
  return std::make_unique<PoolArray>(ValueOf(pool_->Allocate(bytes)));
}

void GroupObject::Abort() {
  std::shared_ptr<Group> group = Open();
  Unlocked unlocked;
  group->Abort();
  group.reset();
}

void GroupObject::Close() {
  std::shared_ptr<Group> group = std::move(group_);
  pool_.reset();
  Unlocked unlocked;
  group.reset();
}

void BindGroup(py::module_& module) {
  py::class_<GroupObject>(module, "Group")
      .def_property_readonly("rank", &GroupObject::rank)
      .def_property_readonly("size", &GroupObject::ranks)
      .def("describe", &GroupObject::Describe)
      .def("run", &GroupObject::Run)
      .def("send", &GroupObject::Send)
      .def("receive", &GroupObject::Receive)
      .def("allocate", &GroupObject::Allocate)
      .def("abort", &GroupObject::Abort)
      .def("close", &GroupObject::Close);
  module.def("note_main_thread", &NoteMainThread);
}

}  // namespace penstock::python
