// TensorFlow's collectives, with all_reduce by teams.
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frameworks/tensorflow/reducers.h"
#include "frameworks/tensorflow/team_values.h"
#include "tensorflow/core/common_runtime/base_collective_executor.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/distributed_runtime/collective_param_resolver_distributed.h"
#include "tensorflow/core/distributed_runtime/collective_rma_distributed.h"
#include "tensorflow/core/distributed_runtime/device_resolver_distributed.h"
#include "tensorflow/core/distributed_runtime/rpc_collective_executor_mgr.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/nccl/collective_communicator.h"
#include "tensorflow/core/platform/unbounded_work_queue.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace tensorflow {
namespace {

using ::tensorflow::CollectiveContext;
using ::tensorflow::CollectiveImplementationInterface;
using ::tensorflow::CollectiveParams;
using ::tensorflow::CollectiveRegistry;
using ::tensorflow::StatusCallback;
using ::tensorflow::Tensor;

class Executor;

// One all_reduce, until it ends. After a timeout, TensorFlow calls
// Executor::StartAbort(), and then ends the operation itself. TensorFlow may
// then destroy the executor, the parameters and the cancellation manager, so
// this class uses them only before the operation has ended. Thread-safe.
class Operation : public std::enable_shared_from_this<Operation> {
 public:
  Operation(Executor* executor, std::shared_ptr<CollectiveContext> context,
            StatusCallback done);

  // Calls `cancel` when the step is cancelled. Returns false if the step is
  // cancelled already.
  bool OnCancel(const std::function<void()>& cancel);
  // Becomes true before the function of OnCancel() runs.
  std::shared_ptr<const std::atomic<bool>> cancelled() {
    return {shared_from_this(), &cancelled_};
  }
  // Ends the operation on another thread, unless it has ended. Other threads
  // continue, because they may run TensorFlow's kernels.
  void End(const absl::Status& status);
  // Ends the operation by TensorFlow's ring, unless it has ended.
  void RunRing();

 private:
  // Returns true once. Afterwards TensorFlow's objects may be destroyed.
  bool Claim(absl::Status* status);

  const std::shared_ptr<CollectiveContext> context_;
  const StatusCallback done_;
  const std::shared_ptr<::tensorflow::UnboundedWorkQueue> queue_;
  std::atomic<bool> cancelled_{false};
  base::Mutex mu_;
  // Null after the end. The manager is also null if TensorFlow has none.
  Executor* executor_ ABSL_GUARDED_BY(mu_);
  ::tensorflow::CancellationManager* cancellation_ ABSL_GUARDED_BY(mu_);
  ::tensorflow::CancellationToken token_ ABSL_GUARDED_BY(mu_) = 0;
};

// Works like TensorFlow's executor, but selects our implementation of
// all_reduce where it can be used.
class Executor final : public ::tensorflow::BaseCollectiveExecutor {
 public:
  Executor(::tensorflow::CollectiveExecutorMgrInterface* manager,
           ::tensorflow::CollectiveRemoteAccess* access, int64_t step,
           const ::tensorflow::DeviceMgr* devices,
           std::shared_ptr<::tensorflow::UnboundedWorkQueue> queue,
           ::tensorflow::WorkerCacheInterface* workers, Reducers* reducers,
           int generation)
      : BaseCollectiveExecutor(manager, access, step, devices,
                               std::move(queue)),
        workers_(workers),
        reducers_(reducers),
        generation_(generation) {}

  void CompleteParamsAsync(const ::tensorflow::DeviceAttributes& device,
                           CollectiveParams* params,
                           ::tensorflow::CancellationManager* cancellation,
                           StatusCallback done) override {
    BaseCollectiveExecutor::CompleteParamsAsync(
        device, params, cancellation,
        [params, done = std::move(done)](const absl::Status& status) {
          if (status.ok() && CanReduce(*params)) {
            params->instance.impl_details.collective_name = kReducer;
          }
          done(status);
        });
  }

  // Called when TensorFlow aborts after an error of any collective, except a
  // cancellation. Afterwards no collective works until the tasks are restarted
  // or make another strategy. TensorFlow may then destroy this executor, so
  // this function ends all its operations.
  void StartAbort(const absl::Status& why) override {
    BaseCollectiveExecutor::StartAbort(why);
    std::set<std::shared_ptr<Operation>> operations;
    {
      base::MutexLock lock(&mu_);
      operations = operations_;
    }
    for (const auto& operation : operations) operation->End(why);
    reducers_->Abort(generation_, why);
  }

  // Holds a reference to an operation until it ends.
  void Add(const std::shared_ptr<Operation>& operation) {
    base::MutexLock lock(&mu_);
    operations_.insert(operation);
  }
  void Remove(const std::shared_ptr<Operation>& operation) {
    base::MutexLock lock(&mu_);
    operations_.erase(operation);
  }
  std::shared_ptr<::tensorflow::UnboundedWorkQueue> queue() const {
    return work_queue_;
  }

  absl::StatusOr<std::shared_ptr<Team>> TeamOf(const CollectiveParams& params) {
    return reducers_->TeamOf(params, workers_, generation_);
  }

 private:
  ::tensorflow::WorkerCacheInterface* const workers_;
  Reducers* const reducers_;
  const int generation_;
  base::Mutex mu_;
  std::set<std::shared_ptr<Operation>> operations_ ABSL_GUARDED_BY(mu_);
};

// Our implementation of all_reduce, for one operation of one task.
class Reducer final : public CollectiveImplementationInterface {
 public:
  // Never called: TensorFlow initializes the parameters for its ring, before
  // Executor names this class.
  absl::Status InitializeCollectiveParams(CollectiveParams*) override {
    return absl::OkStatus();
  }
  absl::Status InitializeCollectiveContext(
      std::shared_ptr<CollectiveContext> context) override {
    context_ = std::move(context);
    return absl::OkStatus();
  }
  void Run(StatusCallback done) override;

 private:
  std::shared_ptr<CollectiveContext> context_;
};

void RunTheRing(const std::shared_ptr<CollectiveContext>& context,
                const StatusCallback& done) {
  CollectiveImplementationInterface* ring = nullptr;
  absl::Status status = CollectiveRegistry::Lookup("RingReduce", &ring);
  if (status.ok()) status = ring->InitializeCollectiveContext(context);
  if (!status.ok()) {
    if (ring != nullptr) ring->Unref();
    return done(status);
  }
  // Keeps the ring alive, because the ring still runs for a moment after it has
  // called `done`.
  ring->Ref();
  const ::tensorflow::core::ScopedUnref until_return(ring);
  ring->Run([ring, done](const absl::Status& ended) {
    ring->Unref();
    done(ended);
  });
}

// Adds the tasks of the ranks that an error names.
absl::Status NamingTasks(const absl::Status& status,
                         const CollectiveParams& params) {
  if (status.ok()) return status;
  std::string text = absl::StrCat(status.message(), "; ranks are");
  for (const auto& member : params.group.members) {
    absl::StrAppend(&text, " ", member.task);
  }
  return {status.code(), text};
}

Operation::Operation(Executor* executor,
                     std::shared_ptr<CollectiveContext> context,
                     StatusCallback done)
    : context_(std::move(context)),
      done_(std::move(done)),
      queue_(executor->queue()),
      executor_(executor),
      cancellation_(context_->op_ctx->cancellation_manager()) {}

bool Operation::OnCancel(const std::function<void()>& cancel) {
  base::MutexLock lock(&mu_);
  if (cancellation_ == nullptr) return true;
  token_ = cancellation_->get_cancellation_token();
  return cancellation_->RegisterCallback(token_,
                                         [self = shared_from_this(), cancel] {
                                           self->cancelled_ = true;
                                           cancel();
                                         });
}

bool Operation::Claim(absl::Status* status) {
  const auto self = shared_from_this();
  base::MutexLock lock(&mu_);
  if (executor_ == nullptr) return false;
  *status = NamingTasks(*status, *context_->col_params);
  // Does not wait for a running callback, which holds a reference to this
  // object.
  if (cancellation_ != nullptr) cancellation_->TryDeregisterCallback(token_);
  cancellation_ = nullptr;
  executor_->Remove(self);
  executor_ = nullptr;
  return true;
}

void Operation::End(const absl::Status& status) {
  absl::Status named = status;
  if (!Claim(&named)) return;
  queue_->Schedule([done = done_, named] { done(named); });
}

void Operation::RunRing() {
  queue_->Schedule([self = shared_from_this()] {
    absl::Status status;
    if (self->Claim(&status)) RunTheRing(self->context_, self->done_);
  });
}

// The tensors of a reduction. Keeps their memory alive until the team has
// finished with it, even if TensorFlow has abandoned the operation.
struct Tensors {
  Tensor in;
  Tensor out;
};

void Reducer::Run(StatusCallback done) {
  const CollectiveParams& params = *context_->col_params;
  auto* const executor = dynamic_cast<Executor*>(context_->col_exec);
  if (executor == nullptr) return RunTheRing(context_, done);
  const auto team = executor->TeamOf(params);
  if (!team.ok()) return done(team.status());
  auto tensors =
      std::make_shared<Tensors>(Tensors{*context_->input, *context_->output});
  Reduction reduction;
  reduction.key = absl::StrCat(context_->step_id, ":", context_->exec_key);
  reduction.op = *ReduceOpOf(params.merge_op->type_string());
  reduction.dtype = *TypeOf(params.instance.data_type);
  reduction.in = tensors->in.data();
  reduction.out = tensors->out.data();
  reduction.count = tensors->out.NumElements();
  const auto operation =
      std::make_shared<Operation>(executor, context_, std::move(done));
  reduction.cancelled = operation->cancelled();
  reduction.memory = std::move(tensors);
  reduction.done = [operation](const absl::Status& status) {
    operation->End(status);
  };
  reduction.otherwise = [operation] { operation->RunRing(); };
  executor->Add(operation);
  if (!operation->OnCancel(
          [team = *team, key = reduction.key] { team->Cancel(key); })) {
    return operation->End(absl::CancelledError("the step was cancelled"));
  }
  (*team)->Add(std::move(reduction));
}

// Registers the implementation once, with the first manager.
void RegisterReducer() {
  static const auto* const registered =
      new ::tensorflow::CollectiveRegistration(kReducer,
                                               [] { return new Reducer; });
  (void)registered;
}

class Manager final : public ::tensorflow::RpcCollectiveExecutorMgr {
 public:
  Manager(
      const ::tensorflow::ConfigProto& config,
      const ::tensorflow::DeviceMgr* devices,
      std::unique_ptr<::tensorflow::DeviceResolverDistributed> device_resolver,
      std::unique_ptr<::tensorflow::CollectiveParamResolverDistributed>
          resolver,
      std::unique_ptr<::tensorflow::NcclCommunicatorInterface> nccl,
      ::tensorflow::WorkerCacheInterface* workers, const std::string& task,
      Reducers* reducers)
      : RpcCollectiveExecutorMgr(config, devices, std::move(device_resolver),
                                 std::move(resolver), std::move(nccl), workers,
                                 task),
        reducers_(reducers),
        generation_(reducers->BeginGeneration()) {}

 protected:
  ::tensorflow::CollectiveExecutor* Create(int64_t step) override {
    auto* const access = new ::tensorflow::CollectiveRemoteAccessDistributed(
        dev_mgr_, dev_resolver_.get(), work_queue_, worker_cache_, step,
        task_name_);
    return new Executor(this, access, step, dev_mgr_, work_queue_,
                        worker_cache_, reducers_, generation_);
  }

 private:
  Reducers* const reducers_;
  const int generation_;
};

}  // namespace

::tensorflow::CollectiveExecutorMgrInterface* NewCollectiveManager(
    const ::tensorflow::ConfigProto& config,
    const ::tensorflow::DeviceMgr* devices,
    ::tensorflow::WorkerCacheInterface* workers, const std::string& task,
    Reducers* reducers) {
  RegisterReducer();
  // Makes the same parts as CreateProdRpcCollectiveExecutorMgr().
  auto nccl = ::tensorflow::MaybeCreateNcclCommunicator(config);
  auto device_resolver =
      std::make_unique<::tensorflow::DeviceResolverDistributed>(devices);
  auto resolver =
      std::make_unique<::tensorflow::CollectiveParamResolverDistributed>(
          config, devices, device_resolver.get(), nccl.get(), workers, task);
  return new Manager(config, devices, std::move(device_resolver),
                     std::move(resolver), std::move(nccl), workers, task,
                     reducers);
}

}  // namespace tensorflow
}  // namespace penstock
