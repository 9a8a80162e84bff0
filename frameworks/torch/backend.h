// The c10d backend "penstock".

#ifndef PENSTOCK_FRAMEWORKS_TORCH_BACKEND_H_
#define PENSTOCK_FRAMEWORKS_TORCH_BACKEND_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "collectives/net/listener.h"
#include "frameworks/torch/engine.h"
#include "frameworks/torch/torch_headers.h"
#include "frameworks/torch/work.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace pytorch {

// A process group for tensors of the CPU. The functions have the names and
// meanings that c10d gives them.
//
// Throws immediately for an invalid argument. The wait() of an operation's Work
// throws its errors, as c10.DistBackendError. An operation runs on the caller's
// thread if the caller has said that it will wait.
//
// Thread-safe.
class Backend final : public c10d::Backend {
 public:
  using Work = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;

  // Meets the other ranks through the store. Throws if the ranks cannot form a
  // group. Does not meet them if the options say that reconfigure() forms the
  // group later.
  Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
          const c10::intrusive_ptr<Options>& options);
  ~Backend() override;

  const std::string getBackendName() const override { return "penstock"; }
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  // Returns a text for people, see collectives::Group::Describe(). Throws if
  // there is no group.
  std::string Describe() const;

  // PyTorch 2.6 does not have the functions below.
#ifdef C10D_BACKEND_HAS_RECONFIGURE
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  void abort() override;
  void shutdown() override;

  bool supportsReconfigure() const override { return true; }
  // Returns this rank's address, with a secret, for the next reconfigure().
  c10d::ReconfigureHandle get_reconfigure_handle() const override;
  // Aborts the current group. Forms a new group of the ranks with these
  // handles, all of which call this function. Blocks. Returns a Work that has
  // ended, perhaps with an error.
  Work reconfigure(const c10d::ReconfigureOptions& options) override;

  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<c10d::Backend> split(
      const c10::intrusive_ptr<c10d::Store>& store,
      const std::vector<int>& ranks,
      const c10::intrusive_ptr<Options>& options) override;
#endif

  // PyTorch 2.6 has no windows.
#ifdef C10D_BACKEND_HAS_WINDOW
  bool supportsWindow() const override { return true; }
  // Makes a window. All ranks call this function in the same order. If there is
  // a tensor, waits for the other ranks.
  c10::intrusive_ptr<c10d::Window> new_window(
      const std::optional<at::Tensor>& tensor) override;
#endif

  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options =
                                       c10d::BroadcastOptions()) override;
  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options =
                                       c10d::AllreduceOptions()) override;
  Work allreduce_coalesced(Tensors& tensors,
                           const c10d::AllreduceCoalescedOptions& options =
                               c10d::AllreduceCoalescedOptions()) override;
  Work reduce(Tensors& tensors, const c10d::ReduceOptions& options =
                                    c10d::ReduceOptions()) override;
  Work allgather(TensorLists& outputs, Tensors& inputs,
                 const c10d::AllgatherOptions& options =
                     c10d::AllgatherOptions()) override;
  Work _allgather_base(at::Tensor& output, at::Tensor& input,
                       const c10d::AllgatherOptions& options =
                           c10d::AllgatherOptions()) override;
  Work allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                           const c10d::AllgatherOptions& options =
                               c10d::AllgatherOptions()) override;
  Work allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::AllgatherOptions& options =
                                           c10d::AllgatherOptions()) override;
  Work gather(
      TensorLists& outputs, Tensors& inputs,
      const c10d::GatherOptions& options = c10d::GatherOptions()) override;
  Work scatter(
      Tensors& outputs, TensorLists& inputs,
      const c10d::ScatterOptions& options = c10d::ScatterOptions()) override;
  Work reduce_scatter(Tensors& outputs, TensorLists& inputs,
                      const c10d::ReduceScatterOptions& options =
                          c10d::ReduceScatterOptions()) override;
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions& options =
                                c10d::ReduceScatterOptions()) override;
  Work reduce_scatter_tensor_coalesced(
      Tensors& outputs, Tensors& inputs,
      const c10d::ReduceScatterOptions& options =
          c10d::ReduceScatterOptions()) override;
  Work alltoall_base(
      at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
      std::vector<int64_t>& input_sizes,
      const c10d::AllToAllOptions& options = c10d::AllToAllOptions()) override;
  Work alltoall(
      Tensors& outputs, Tensors& inputs,
      const c10d::AllToAllOptions& options = c10d::AllToAllOptions()) override;
  Work barrier(
      const c10d::BarrierOptions& options = c10d::BarrierOptions()) override;

  // Sends a message. The Work's wait() throws at the group's timeout.
  Work send(Tensors& tensors, int to, int tag) override;
  Work recv(Tensors& tensors, int from, int tag) override;
  Work recvAnysource(Tensors& tensors, int tag) override;

 private:
  using Run = std::function<absl::Status(collectives::Group* group)>;

  // Runs `run` after all earlier operations: in this thread, or on another
  // thread if `async`.
  Work Start(c10d::OpType type, const char* title, bool async,
             const Tensors& inputs, Tensors outputs, Run run);

  c10::intrusive_ptr<Operation> MakeMessage(c10d::OpType type,
                                            const char* title,
                                            const Tensors& tensors);
  Work Receive(c10d::OpType type, const char* title, const Tensors& tensors,
               int from, int tag);
  // Returns the engine. Throws if reconfigure() has formed no group, and in the
  // child of a fork.
  std::shared_ptr<Engine> CheckEngine(const char* title) const;
  std::shared_ptr<Engine> engine() const;

  // Ends the current group, and forms the group for reconfigure().
  absl::Status FormGroupAgain(const std::vector<std::string>& handles,
                              absl::Duration timeout);

  const c10::intrusive_ptr<Options> options_;
  const std::string store_host_;
  std::atomic<uint64_t> sequence_{0};
  mutable base::Mutex mu_;
  // The engine of the current group. Null before reconfigure(), and after a
  // failed one. The engine's tasks use the engine without owning it, because
  // its destructor waits for them.
  std::shared_ptr<Engine> engine_ ABSL_GUARDED_BY(mu_);
  // The listener for the next reconfigure().
  mutable std::unique_ptr<collectives::Listener> listener_ ABSL_GUARDED_BY(mu_);
  mutable std::string listener_host_ ABSL_GUARDED_BY(mu_);
};

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_BACKEND_H_
