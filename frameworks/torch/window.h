// One-sided windows of PyTorch, from 2.15 on.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_WINDOW_H_
#define PENSTOCK_FRAMEWORKS_TORCH_WINDOW_H_

#include "frameworks/torch/torch_headers.h"

#ifdef C10D_BACKEND_HAS_WINDOW

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "collectives/group.h"
#include "frameworks/torch/engine.h"
#include "frameworks/torch/remote_memory.h"
#include "frameworks/torch/work.h"

namespace penstock {
namespace pytorch {

// A tensor of each rank, into which the other ranks write. The functions have
// the names and meanings that c10d gives them.
//
// The Work of put() ends when the other rank has the elements. A rank that has
// received a signal sees all earlier puts of the same rank. An error of a
// single operation does not end the group. A wait_signal() that throws consumes
// no signal. If wait() of an asynchronous wait_signal() times out, its Work is
// not over, and still consumes the next signal.
//
// Thread-compatible, except that put(), signal() and wait_signal() are
// thread-safe.
class Window final : public c10d::Window {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;

  // Makes this rank's part of a window. All ranks of the engine's group must
  // make the same windows, in the same order.
  Window(std::shared_ptr<Engine> engine, int rank, int ranks,
         std::chrono::milliseconds timeout);
  ~Window() override;

  // Gives the other ranks write access to a contiguous tensor of the CPU. Ranks
  // may have different sizes, but must have the same type. The window keeps the
  // tensor alive even if `owning` is false, because a put may be late.
  void tensor_register(const at::Tensor& tensor, bool owning) override;
  // Waits for all ranks. Later puts are refused. A put that another rank has
  // begun may still arrive, so first wait for the Works of puts. Releases the
  // tensor even if this function throws.
  void tensor_deregister() override;
  Work put(const at::Tensor& tensor, int64_t to, int64_t offset, bool async,
           const c10d::PutOptions& options) override;
  // Returns this rank's own tensor. Throws for another rank, whose memory is
  // not writable here.
  at::Tensor map_remote_tensor(int64_t rank) override;
  Work signal(int64_t to, bool async,
              const c10d::SignalOptions& options) override;
  Work wait_signal(int64_t from, bool async,
                   const c10d::WaitSignalOptions& options) override;
  c10d::WindowAttr get_attr(int64_t rank) override;

 private:
  // The shape of a rank's tensor, as the ranks exchange it.
  struct Shape {
    int64_t elements;
    int64_t type;
  };

  void CheckNotForked() const;
  void CheckRank(int64_t rank) const;
  c10::intrusive_ptr<Operation> Make(c10d::OpType type, const char* title,
                                     std::chrono::milliseconds timeout,
                                     const std::vector<at::Tensor>& tensors);
  // Returns a function that ends the operation.
  static RemoteMemory::Done EndOf(
      const std::shared_ptr<Engine>& engine,
      const c10::intrusive_ptr<Operation>& operation, const char* title);
  // Runs a collective operation of the group. Throws the operation's error.
  void RunOnAll(
      const char* title,
      const std::function<absl::Status(collectives::Group* group)>& run);

  std::shared_ptr<Engine> engine_;
  const int rank_;
  const int ranks_;
  const std::chrono::milliseconds timeout_;
  std::shared_ptr<RemoteMemory> memory_;
  at::Tensor tensor_;          // undefined if none is registered
  std::vector<Shape> shapes_;  // by rank
};

}  // namespace pytorch
}  // namespace penstock

#endif  // C10D_BACKEND_HAS_WINDOW

#endif  // PENSTOCK_FRAMEWORKS_TORCH_WINDOW_H_
