#include "frameworks/torch/window.h"

#ifdef C10D_BACKEND_HAS_WINDOW

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collectives/group.h"
#include "frameworks/torch/engine.h"
#include "frameworks/torch/errors.h"
#include "frameworks/torch/remote_memory.h"
#include "frameworks/torch/tensors.h"
#include "frameworks/torch/torch_headers.h"
#include "frameworks/torch/work.h"
#include "tensor_service/dtype.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace pytorch {
namespace {

// Returns the bytes of a contiguous tensor. The bytes keep the tensor alive.
memory::Bytes BytesOf(const at::Tensor& tensor) {
  const auto owner = std::make_shared<at::Tensor>(tensor);
  memory::Bytes bytes;
  bytes.data = static_cast<const uint8_t*>(owner->data_ptr());
  bytes.size = owner->nbytes();
  bytes.owner = owner;
  return bytes;
}

}  // namespace

Window::Window(std::shared_ptr<Engine> engine, int rank, int ranks,
               std::chrono::milliseconds timeout)
    : engine_(std::move(engine)),
      rank_(rank),
      ranks_(ranks),
      timeout_(timeout),
      memory_(std::make_shared<RemoteMemory>(engine_->mailbox(), rank, ranks,
                                             engine_->NextWindow())) {
  memory_->Open();
}

// Python destroys a window with its own lock held. The last owner of an engine
// waits for threads that may need this lock.
Window::~Window() {
  std::optional<pybind11::gil_scoped_release> unlocked;
  if (Py_IsInitialized() != 0 && PyGILState_Check() != 0) unlocked.emplace();
  if (!engine_->forked()) {
    memory_->Detach();
    memory_->Close();
  }
  memory_.reset();
  engine_.reset();
}

void Window::RunOnAll(
    const char* title,
    const std::function<absl::Status(collectives::Group* group)>& run) {
  absl::Status status;
  engine_->collectives()->RunHere([&] {
    const std::shared_ptr<collectives::Group> group = engine_->group();
    status = group != nullptr
                 ? run(group.get())
                 : absl::FailedPreconditionError("the group was shut down");
  });
  if (!status.ok()) std::rethrow_exception(ErrorOf(title, status));
}

void Window::tensor_register(const at::Tensor& tensor, bool /*owning*/) {
  static constexpr char kTitle[] = "penstock:tensor_register";
  CheckNotForked();
  CheckTensor("tensor_register", tensor);
  TORCH_CHECK(!tensor.is_conj() && !tensor.is_neg(), kTitle,
              ": the tensor is a conjugate or negative view, register "
              "tensor.resolve_conj().resolve_neg()");
  TORCH_CHECK(tensor.is_contiguous(), kTitle,
              ": the tensor is not contiguous, register tensor.contiguous()");
  TORCH_CHECK(!tensor_.defined(), kTitle,
              ": the window has a tensor, call tensor_deregister() first");
  const Shape own = {tensor.numel(),
                     static_cast<int64_t>(tensor.scalar_type())};
  // Attaches the memory before the other ranks learn the shape, because they
  // may write from then on.
  memory_->Attach(BytesOf(tensor));
  std::vector<Shape> shapes(ranks_);
  try {
    RunOnAll(kTitle, [&](collectives::Group* group) {
      return group->AllGather(tensor::DType::kUint8, &own, shapes.data(),
                              static_cast<int64_t>(sizeof own));
    });
  } catch (...) {
    memory_->Detach();
    throw;
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    if (shapes[rank].type == own.type) continue;
    memory_->Detach();
    TORCH_CHECK(false, kTitle, ": rank ", rank, " and rank ", rank_,
                " have tensors of different types");
  }
  tensor_ = tensor;
  shapes_ = std::move(shapes);
}

void Window::tensor_deregister() {
  static constexpr char kTitle[] = "penstock:tensor_deregister";
  CheckNotForked();
  TORCH_CHECK(tensor_.defined(), kTitle, ": the window has no tensor");
  // Detaches the memory whatever the barrier returns: a rank that has failed
  // never arrives.
  const auto detach = [this] {
    memory_->Detach();
    tensor_ = at::Tensor();
    shapes_.clear();
  };
  try {
    RunOnAll(kTitle,
             [](collectives::Group* group) { return group->Barrier(); });
  } catch (...) {
    detach();
    throw;
  }
  detach();
}

void Window::CheckNotForked() const {
  TORCH_CHECK(!engine_->forked(),
              "penstock: the child of a fork must not use its parent's window");
}

void Window::CheckRank(int64_t rank) const {
  TORCH_CHECK(rank >= 0 && rank < ranks_, "penstock: rank is ", rank,
              ", expected 0 to ", ranks_ - 1);
  CheckNotForked();
}

c10::intrusive_ptr<Operation> Window::Make(
    c10d::OpType type, const char* title, std::chrono::milliseconds timeout,
    const std::vector<at::Tensor>& tensors) {
  Operation::Description description{type, title};
  description.timeout = timeout == c10d::kUnsetTimeout ? timeout_ : timeout;
  return c10::make_intrusive<Operation>(rank_, description, tensors, tensors,
                                        nullptr);
}

RemoteMemory::Done Window::EndOf(const std::shared_ptr<Engine>& engine,
                                 const c10::intrusive_ptr<Operation>& operation,
                                 const char* title) {
  // Does not own the engine, because the engine's destructor waits for this
  // function.
  return [workers = engine->workers(), operation,
          title](const absl::Status& status) {
    operation->Finish(status.ok() ? nullptr : ErrorOf(title, status));
    const std::function<void()> complete = CallBack(workers, operation);
    if (complete != nullptr) complete();
  };
}

Window::Work Window::put(const at::Tensor& tensor, int64_t to, int64_t offset,
                         bool async, const c10d::PutOptions& options) {
  static constexpr char kTitle[] = "penstock:put";
  CheckRank(to);
  CheckTensor("put", tensor);
  TORCH_CHECK(tensor_.defined(), kTitle, ": the window has no tensor");
  TORCH_CHECK(tensor.scalar_type() == tensor_.scalar_type(), kTitle,
              ": the tensor has another type than the window");
  const int64_t size = shapes_[to].elements;
  TORCH_CHECK(
      offset >= 0 && tensor.numel() <= size && offset <= size - tensor.numel(),
      kTitle, ": ", tensor.numel(), " elements at ", offset,
      " are outside of the window of rank ", to, ", which has ", size);
  auto operation = Make(c10d::OpType::SEND, kTitle, options.timeout, {tensor});
  memory_->Put(static_cast<int>(to),
               offset * static_cast<int64_t>(tensor.element_size()),
               BytesOf(tensor.resolve_conj().resolve_neg().contiguous()),
               EndOf(engine_, operation, kTitle));
  if (!async) operation->wait();
  return operation;
}

at::Tensor Window::map_remote_tensor(int64_t rank) {
  CheckRank(rank);
  TORCH_CHECK(tensor_.defined(),
              "penstock:map_remote_tensor: the window has "
              "no tensor");
  TORCH_CHECK(rank == rank_, "penstock:map_remote_tensor: rank ", rank_,
              " cannot map the memory of rank ", rank,
              ": let that rank put() what is needed");
  return tensor_;
}

Window::Work Window::signal(int64_t to, bool async,
                            const c10d::SignalOptions& options) {
  static constexpr char kTitle[] = "penstock:signal";
  CheckRank(to);
  auto operation = Make(c10d::OpType::SEND, kTitle, options.timeout, {});
  memory_->Signal(static_cast<int>(to), EndOf(engine_, operation, kTitle));
  if (!async) operation->wait();
  return operation;
}

Window::Work Window::wait_signal(int64_t from, bool async,
                                 const c10d::WaitSignalOptions& options) {
  static constexpr char kTitle[] = "penstock:wait_signal";
  CheckRank(from);
  auto operation = Make(c10d::OpType::RECV, kTitle, options.timeout, {});
  const RemoteMemory::Ticket ticket = memory_->AwaitSignal(
      static_cast<int>(from), EndOf(engine_, operation, kTitle));
  if (async) return operation;
  try {
    operation->wait();
  } catch (...) {
    if (memory_->Withdraw(static_cast<int>(from), ticket)) throw;
    operation->wait();  // The operation ended meanwhile.
  }
  return operation;
}

c10d::WindowAttr Window::get_attr(int64_t rank) {
  CheckRank(rank);
  return {c10d::WindowAccessType::UNIFIED};
}

}  // namespace pytorch
}  // namespace penstock

#endif  // C10D_BACKEND_HAS_WINDOW
