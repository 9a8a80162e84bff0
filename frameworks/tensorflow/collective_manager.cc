// TensorFlow's collectives, with all_reduce by teams.
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
#include "tensorflow/core/nccl/collective_communicator.h"

namespace penstock {
namespace tensorflow {
namespace {

using ::tensorflow::CollectiveContext;
using ::tensorflow::CollectiveImplementationInterface;
using ::tensorflow::CollectiveParams;
using ::tensorflow::CollectiveRegistry;
using ::tensorflow::StatusCallback;
using ::tensorflow::Tensor;

// As TensorFlow's executor, but names our implementation where it fits.
class Executor final : public ::tensorflow::BaseCollectiveExecutor {
 public:
  Executor(::tensorflow::CollectiveExecutorMgrInterface* manager,
           ::tensorflow::CollectiveRemoteAccess* access, int64_t step,
           const ::tensorflow::DeviceMgr* devices,
           std::shared_ptr<::tensorflow::UnboundedWorkQueue> queue,
           ::tensorflow::WorkerCacheInterface* workers, Reducers* reducers)
      : BaseCollectiveExecutor(manager, access, step, devices,
                               std::move(queue)),
        workers_(workers),
        reducers_(reducers) {}

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

  // TensorFlow aborts after an error of any collective. Then no collective
  // works any more, until the tasks start again.
  void StartAbort(const absl::Status& why) override {
    BaseCollectiveExecutor::StartAbort(why);
    reducers_->Abort(why);
  }

  absl::StatusOr<std::shared_ptr<Team>> TeamOf(const CollectiveParams& params) {
    return reducers_->TeamOf(params, workers_);
  }

 private:
  ::tensorflow::WorkerCacheInterface* const workers_;
  Reducers* const reducers_;
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
  static void RunRing(const std::shared_ptr<CollectiveContext>& context,
                      const StatusCallback& done);

  std::shared_ptr<CollectiveContext> context_;
};

void Reducer::RunRing(const std::shared_ptr<CollectiveContext>& context,
                      const StatusCallback& done) {
  CollectiveImplementationInterface* ring = nullptr;
  absl::Status status = CollectiveRegistry::Lookup("RingReduce", &ring);
  if (status.ok()) status = ring->InitializeCollectiveContext(context);
  if (!status.ok()) {
    if (ring != nullptr) ring->Unref();
    return done(status);
  }
  // The ring goes on for a moment after it is done.
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

// The tensors of a reduction. Keeps their memory until the team has finished
// with it, even if TensorFlow has given up the operation.
struct Tensors {
  Tensor in;
  Tensor out;
};

void Reducer::Run(StatusCallback done) {
  const CollectiveParams& params = *context_->col_params;
  auto* const executor = dynamic_cast<Executor*>(context_->col_exec);
  if (executor == nullptr) return RunRing(context_, done);
  const auto team = executor->TeamOf(params);
  if (!team.ok()) return done(team.status());
  const std::string key =
      absl::StrCat(context_->step_id, ":", context_->exec_key);
  auto* const cancellation = context_->op_ctx->cancellation_manager();
  ::tensorflow::CancellationToken token = 0;
  if (cancellation != nullptr) {
    token = cancellation->get_cancellation_token();
    if (!cancellation->RegisterCallback(
            token, [team = *team, key] { team->Cancel(key); })) {
      return done(absl::CancelledError("the step was cancelled"));
    }
  }
  auto tensors =
      std::make_shared<Tensors>(Tensors{*context_->input, *context_->output});
  Reduction reduction;
  reduction.key = key;
  reduction.op = *ReduceOpOf(params.merge_op->type_string());
  reduction.dtype = *TypeOf(params.instance.data_type);
  reduction.in = tensors->in.data();
  reduction.out = tensors->out.data();
  reduction.count = tensors->out.NumElements();
  // Other threads continue, because they may run TensorFlow's kernels.
  const auto proceed = [executor, cancellation,
                        token](std::function<void()> next) {
    executor->RunClosure([cancellation, token, next = std::move(next)] {
      if (cancellation != nullptr) cancellation->DeregisterCallback(token);
      next();
    });
  };
  reduction.done = [tensors, context = context_, proceed,
                    done](const absl::Status& ended) {
    // Lets TensorFlow use the result's memory again.
    *tensors = Tensors();
    const absl::Status status = NamingTasks(ended, *context->col_params);
    proceed([done, status] { done(status); });
  };
  reduction.otherwise = [tensors, context = context_, proceed, done] {
    *tensors = Tensors();
    proceed([context, done] { RunRing(context, done); });
  };
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
        reducers_(reducers) {}

 protected:
  ::tensorflow::CollectiveExecutor* Create(int64_t step) override {
    auto* const access = new ::tensorflow::CollectiveRemoteAccessDistributed(
        dev_mgr_, dev_resolver_.get(), work_queue_, worker_cache_, step,
        task_name_);
    return new Executor(this, access, step, dev_mgr_, work_queue_,
                        worker_cache_, reducers_);
  }

 private:
  Reducers* const reducers_;
};

}  // namespace

::tensorflow::CollectiveExecutorMgrInterface* NewCollectiveManager(
    const ::tensorflow::ConfigProto& config,
    const ::tensorflow::DeviceMgr* devices,
    ::tensorflow::WorkerCacheInterface* workers, const std::string& task,
    Reducers* reducers) {
  RegisterReducer();
  // The same parts as in CreateProdRpcCollectiveExecutorMgr().
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
