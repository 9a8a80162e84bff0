// A c10d::Work of an operation of this backend.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_WORK_H_
#define PENSTOCK_FRAMEWORKS_TORCH_WORK_H_

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "frameworks/torch/task_queue.h"
#include "frameworks/torch/torch_headers.h"
#include "frameworks/torch/workers.h"

namespace penstock {
namespace pytorch {

// Thread-safe.
class Operation final : public c10d::Work {
 public:
  struct Description {
    c10d::OpType type;
    const char* title;  // for profiles, "penstock:broadcast"; a literal
    uint64_t sequence = 0;
    bool async = true;
    std::chrono::milliseconds timeout{0};
    int source = -1;  // the sender of a message that is received
  };

  // `queue` runs the operation and calls Finish(). `queue` is null for
  // messages: their wait() ends after the timeout of the description.
  Operation(int rank, const Description& description,
            const std::vector<at::Tensor>& inputs,
            std::vector<at::Tensor> outputs, std::shared_ptr<TaskQueue> queue)
      : Work(rank, description.type, description.title, inputs),
        description_(description),
        outputs_(std::move(outputs)),
        queue_(std::move(queue)) {}

  // Ends the operation. Call once. A later CompleteFuture() runs callbacks.
  void Finish(std::exception_ptr error) { finish(std::move(error)); }
  // Completes the future, if somebody has asked for it. Call once, after
  // Finish().
  void CompleteFuture();
  // Returns true if CompleteFuture() has something to do, and may run
  // callbacks.
  bool has_future();
  // Sets the sender. Call before Finish().
  void set_source(int source) { description_.source = source; }

  // Waits for the operation. Without a timeout, meanwhile also runs operations
  // whose turn comes.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  int sourceRank() const override { return description_.source; }
  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return description_.sequence; }
#ifdef C10D_BACKEND_HAS_RECONFIGURE  // not in PyTorch 2.6
  std::chrono::milliseconds getTimeout() const override {
    return description_.timeout;
  }
#endif

 private:
  void Mark(c10::ivalue::Future* future);

  Description description_;
  const std::vector<at::Tensor> outputs_;
  const std::shared_ptr<TaskQueue> queue_;
  // Guarded by mutex_ of Work. Null until somebody asks for the future.
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  // True once a thread has started to complete the future.
  bool marked_ = false;
};

// Runs the callbacks of a finished operation, on a thread that may wait. If no
// thread starts, returns a function that runs them.
std::function<void()> CallBack(Workers* workers,
                               const c10::intrusive_ptr<Operation>& operation);

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_WORK_H_
