#include "frameworks/torch/backend.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "collectives/host/group.h"
#include "collectives/host/pool.h"
#include "frameworks/torch/engine.h"
#include "frameworks/torch/errors.h"
#include "frameworks/torch/place.h"
#include "frameworks/torch/pool_allocator.h"
#include "frameworks/torch/rendezvous.h"
#include "frameworks/torch/store_board.h"
#include "frameworks/torch/torch_headers.h"
#include "frameworks/torch/window.h"
#include "frameworks/torch/work.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace pytorch {
namespace {

std::unique_ptr<Engine> Form(const c10::intrusive_ptr<c10d::Store>& store,
                             int rank, int size,
                             const c10d::Backend::Options& options) {
  collectives::HostGroupOptions ours;
  ours.ranks = size;
  if (options.timeout.count() > 0) {
    ours.timeout = absl::FromChrono(options.timeout);
  }
  ours.pool_bytes = PoolAllocator::TakeRequest();
  StoreBoard board(store);
  const absl::StatusOr<Place> place = PlaceOfProcess(board.Host());
  auto formed = place.ok() ? FormGroup(&board, *place, rank, ours)
                           : absl::StatusOr<FormedGroup>(place.status());
  const std::shared_ptr<collectives::Pool> pool =
      formed.ok() ? formed->pool : nullptr;
  auto engine = formed.ok()
                    ? Engine::Start(*std::move(formed))
                    : absl::StatusOr<std::unique_ptr<Engine>>(formed.status());
  if (!engine.ok()) {
    std::rethrow_exception(
        ErrorOf("penstock cannot form the group", engine.status()));
  }
  if (pool != nullptr) PoolAllocator::Use(pool);
  return *std::move(engine);
}

bool IsFormedLater(const c10d::Backend::Options& options) {
#ifdef C10D_BACKEND_HAS_RECONFIGURE
  return options.enable_reconfigure;
#else
  return false;
#endif
}

void RunOnGroup(
    Engine* engine, Operation* operation, const char* title,
    const std::function<absl::Status(collectives::Group* group)>& run) {
  const std::shared_ptr<collectives::Group> group = engine->group();
  if (group == nullptr) {
    operation->Finish(ErrorOf(
        title, absl::FailedPreconditionError("the group was shut down")));
    return;
  }
  std::exception_ptr error;
  try {
    const absl::Status status = run(group.get());
    if (!status.ok()) error = ErrorOf(title, status);
  } catch (...) {
    // Aborts the group if PyTorch cannot copy the tensor or has no memory, so
    // that the other ranks do not wait.
    error = std::current_exception();
    group->Abort();
  }
  operation->Finish(error);
}

}  // namespace

Backend::Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                 int size, const c10::intrusive_ptr<Options>& options)
    : c10d::Backend(rank, size),
      options_(options),
      store_host_(StoreBoard(store).Host()) {
  if (!IsFormedLater(*options)) {
    std::shared_ptr<Engine> engine = Form(store, rank, size, *options);
    base::MutexLock lock(&mu_);
    engine_ = std::move(engine);
  }
  init();
}

Backend::~Backend() = default;

std::shared_ptr<Engine> Backend::engine() const {
  base::MutexLock lock(&mu_);
  return engine_;
}

std::shared_ptr<Engine> Backend::CheckEngine(const char* title) const {
  std::shared_ptr<Engine> engine = this->engine();
  TORCH_CHECK(engine != nullptr, title,
              ": the group is not formed, call reconfigure() first");
  TORCH_CHECK(!engine->forked(), title,
              ": the child of a fork must not use its parent's group");
  return engine;
}

std::string Backend::Describe() const {
  constexpr char kTitle[] = "penstock.torch.describe";
  const std::shared_ptr<collectives::Group> group =
      CheckEngine(kTitle)->group();
  TORCH_CHECK(group != nullptr, kTitle, ": the group was shut down");
  return group->Describe();
}

#ifdef C10D_BACKEND_HAS_RECONFIGURE

c10::intrusive_ptr<c10d::Backend> Backend::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Options>& options) {
  const auto own = std::find(ranks.begin(), ranks.end(), getRank());
  if (own == ranks.end()) return nullptr;
  return c10::make_intrusive<Backend>(
      store, static_cast<int>(own - ranks.begin()),
      static_cast<int>(ranks.size()), options ? options : options_->clone());
}

void Backend::abort() {
  const std::shared_ptr<Engine> engine = this->engine();
  if (engine != nullptr) engine->Abort();
}

void Backend::shutdown() {
  const std::shared_ptr<Engine> engine = this->engine();
  if (engine != nullptr) engine->Close();
}

#endif

#ifdef C10D_BACKEND_HAS_WINDOW

c10::intrusive_ptr<c10d::Window> Backend::new_window(
    const std::optional<at::Tensor>& tensor) {
  std::shared_ptr<Engine> engine = CheckEngine("penstock:new_window");
  auto window = c10::make_intrusive<Window>(std::move(engine), getRank(),
                                            getSize(), options_->timeout);
  if (tensor.has_value()) window->tensor_register(*tensor, /*owning=*/true);
  return window;
}

#endif

Backend::Work Backend::Start(c10d::OpType type, const char* title, bool async,
                             const Tensors& inputs, Tensors outputs, Run run) {
  const std::shared_ptr<Engine> engine = CheckEngine(title);
  Operation::Description description{type, title};
  description.sequence = ++sequence_;
  description.timeout = options_->timeout;
  auto operation =
      c10::make_intrusive<Operation>(getRank(), description, inputs,
                                     std::move(outputs), engine->collectives());
  if (async) {
    engine->collectives()->AddWithSequel(
        [engine = engine.get(), operation, title, run = std::move(run)] {
          RunOnGroup(engine, operation.get(), title, run);
          return CallBack(engine->workers(), operation);
        });
  } else {
    engine->collectives()->RunHere(
        [&] { RunOnGroup(engine.get(), operation.get(), title, run); });
  }
  return operation;
}

}  // namespace pytorch
}  // namespace penstock
