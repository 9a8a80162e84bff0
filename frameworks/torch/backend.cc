#include "frameworks/torch/backend.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "collectives/host/group.h"
#include "frameworks/torch/engine.h"
#include "frameworks/torch/errors.h"
#include "frameworks/torch/place.h"
#include "frameworks/torch/rendezvous.h"
#include "frameworks/torch/store_board.h"
#include "frameworks/torch/torch_headers.h"
#include "frameworks/torch/work.h"

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
  StoreBoard board(store);
  const absl::StatusOr<Place> place = PlaceOfProcess(board.Host());
  auto formed = place.ok() ? FormGroup(&board, *place, rank, ours)
                           : absl::StatusOr<FormedGroup>(place.status());
  auto engine = formed.ok()
                    ? Engine::Start(*std::move(formed))
                    : absl::StatusOr<std::unique_ptr<Engine>>(formed.status());
  if (!engine.ok()) {
    std::rethrow_exception(
        ErrorOf("penstock cannot form the group", engine.status()));
  }
  return *std::move(engine);
}

}  // namespace

Backend::Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                 int size, const c10::intrusive_ptr<Options>& options)
    : c10d::Backend(rank, size),
      options_(options),
      engine_(Form(store, rank, size, *options)) {
  init();
}

Backend::~Backend() = default;

c10::intrusive_ptr<c10d::Backend> Backend::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Options>& options) {
  const auto own = std::find(ranks.begin(), ranks.end(), getRank());
  if (own == ranks.end()) return nullptr;
  return c10::make_intrusive<Backend>(
      store, static_cast<int>(own - ranks.begin()),
      static_cast<int>(ranks.size()), options ? options : options_->clone());
}

void Backend::CheckOwner(const char* title) const {
  TORCH_CHECK(!engine_->forked(), title,
              ": the child of a fork must not use its parent's group");
}

void Backend::RunOnGroup(Operation* operation, const char* title,
                         const Run& run) {
  const std::shared_ptr<collectives::Group> group = engine_->group();
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
    // PyTorch cannot copy, or has no memory. Aborts the group, so that the
    // other ranks do not wait.
    error = std::current_exception();
    group->Abort();
  }
  operation->Finish(error);
}

void Backend::CallBack(const c10::intrusive_ptr<Operation>& operation) {
  if (!operation->has_future()) return;
  engine_->workers()->Run([operation] { operation->CompleteFuture(); });
}

Backend::Work Backend::Start(c10d::OpType type, const char* title, bool async,
                             const Tensors& inputs, Tensors outputs, Run run) {
  CheckOwner(title);
  Operation::Description description{type, title};
  description.sequence = ++sequence_;
  description.timeout = options_->timeout;
  auto operation = c10::make_intrusive<Operation>(getRank(), description,
                                                  inputs, std::move(outputs),
                                                  engine_->collectives());
  if (async) {
    engine_->collectives()->Add([this, operation, title, run = std::move(run)] {
      RunOnGroup(operation.get(), title, run);
      CallBack(operation);
    });
  } else {
    engine_->collectives()->RunHere(
        [&] { RunOnGroup(operation.get(), title, run); });
  }
  return operation;
}

}  // namespace pytorch
}  // namespace penstock
