// Runs a parameter server in this process, and workers that call it directly.

#ifndef PENSTOCK_TESTS_PS_SERVER_SMALL_SERVER_H_
#define PENSTOCK_TESTS_PS_SERVER_SMALL_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/types/optional.h"
#include "ps/model/model.h"
#include "ps/server/server.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// The pending answer to a call. Wait() blocks until the answer comes.
template <typename T>
class Answer {
 public:
  std::function<void(absl::StatusOr<T>)> callback() {
    return [state = state_](absl::StatusOr<T> result) {
      state->result = std::move(result);
      state->is_there.Notify();
    };
  }
  bool is_there() const { return state_->is_there.HasBeenNotified(); }
  absl::StatusOr<T> Wait() {
    state_->is_there.WaitForNotification();
    return state_->result;
  }

 private:
  struct State {
    absl::Notification is_there;
    absl::StatusOr<T> result;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

inline TableSpec DenseTable(const std::string& name, tensor::Shape shape,
                            int64_t staleness = 0,
                            tensor::DType dtype = tensor::DType::kF32) {
  TableSpec table;
  table.name = name;
  table.rows = DenseSpec{dtype, std::move(shape)};
  table.staleness = staleness;
  table.optimizer.schedule.learning_rate = 1;
  return table;
}

inline TableSpec SparseTable(const std::string& name, uint32_t dim,
                             int64_t staleness = 0) {
  TableSpec table;
  table.name = name;
  SparseSpec rows;
  rows.dim = dim;
  table.rows = rows;
  table.staleness = staleness;
  table.optimizer.schedule.learning_rate = 1;
  return table;
}

inline tensor::NamedTensor Floats(const std::string& name, tensor::Shape shape,
                                  const std::vector<float>& values) {
  return {name, *tensor::Tensor::Of<float>(std::move(shape), values)};
}

inline tensor::NamedTensor Ids(const std::string& table,
                               const std::vector<int64_t>& ids) {
  return {table, *tensor::Tensor::Of<int64_t>(
                     {static_cast<int64_t>(ids.size())}, ids)};
}

inline std::vector<float> ElementsOf(const tensor::Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  if (!flat.ok()) return {};
  return {flat->begin(), flat->end()};
}

// The only server of a training. The training is run 7.
class SmallServer {
 public:
  static constexpr View kView = {7, 1};

  explicit SmallServer(Server::Options options = {}) {
    options.log = [this](const std::string& note) {
      absl::MutexLock lock(&mu_);
      log_.push_back(note);
    };
    server_ = std::make_unique<Server>(options);
  }

  Server* operator->() { return server_.get(); }
  Server& operator*() { return *server_; }

  static Server::Definition Definition(Model model) {
    Server::Definition definition;
    definition.model = std::move(model);
    definition.servers = {"ps0:2222"};
    definition.run = kView.run;
    return definition;
  }
  absl::StatusOr<Server::Defined> Define(Model model) {
    return server_->Define(Definition(std::move(model)));
  }

  absl::StatusOr<Server::PushVerdict> Push(const WorkerId& worker,
                                           uint64_t clock,
                                           tensor::Bundle bundle) {
    Answer<Server::PushVerdict> answer;
    server_->Push(kView, worker, clock, bundle, answer.callback());
    return answer.Wait();
  }

  Answer<Server::Pulled> StartPull(const absl::optional<WorkerId>& worker,
                                   uint64_t clock, tensor::Bundle ids = {}) {
    Server::PullSpec spec;
    spec.worker = worker;
    spec.clock = clock;
    spec.all_parts = true;
    spec.ids = std::move(ids);
    Answer<Server::Pulled> answer;
    server_->Pull(kView, std::move(spec), answer.callback());
    return answer;
  }
  absl::StatusOr<Server::Pulled> Pull(const absl::optional<WorkerId>& worker,
                                      uint64_t clock, tensor::Bundle ids = {}) {
    return StartPull(worker, clock, std::move(ids)).Wait();
  }

  std::vector<std::string> log() const {
    absl::MutexLock lock(&mu_);
    return log_;
  }

 private:
  mutable absl::Mutex mu_;
  std::vector<std::string> log_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Server> server_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_SERVER_SMALL_SERVER_H_
