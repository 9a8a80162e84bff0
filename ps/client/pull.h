// A pull: its request, its values, and the call.

#ifndef PENSTOCK_PS_CLIENT_PULL_H_
#define PENSTOCK_PS_CLIENT_PULL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/client/call_loop.h"
#include "ps/client/dense_values.h"
#include "ps/client/patient_call.h"
#include "ps/client/training_connection.h"
#include "ps/sparse/hash.h"
#include "ps/wire/ps.pb.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// The rows of a sparse table for these ids, which may repeat.
struct RowsWanted {
  std::string table;
  std::vector<uint64_t> ids;
};

struct PullSpec {
  bool all_dense = true;
  std::vector<std::string> dense;  // if not all
  std::vector<RowsWanted> rows;    // each table once
  // The type, kF16 or kBF16, as which values of longer types are sent and
  // returned.
  absl::optional<tensor::DType> dtype;
};

// The values of a pull. Values share the received memory as long as they live:
// memory of a peer on this host, or of the transport. Tensor::Compact() copies
// a value out of that memory.
class Pulled {
 public:
  // Returns the step of the values: the lowest step of the queried servers.
  // Higher than the requested step if the other workers are ahead.
  uint64_t clock() const { return clock_; }
  // Returns the longest time that a server waited for fresh values.
  absl::Duration waited() const { return waited_; }

  // Returns the value of a dense table, for reading. A small value is a view of
  // its part. A large value may be unaligned; see Tensor::Aligned(). Returns
  // NOT_FOUND if the pull did not ask for the table.
  absl::StatusOr<tensor::Tensor> Dense(absl::string_view table) const;
  // Returns all dense values of the pull. Takes about 0.1 us for each.
  tensor::Bundle AllDense() const;
  // Returns [n, dim]: one row for each id of PullSpec::rows[at], in that order.
  const tensor::Tensor& Rows(size_t at) const { return rows_[at]; }

 private:
  friend class PullCall;
  Pulled(std::shared_ptr<const TrainingConnection> connection,
         TableAssembly dense)
      : connection_(std::move(connection)), dense_(std::move(dense)) {}

  std::shared_ptr<const TrainingConnection> connection_;
  TableAssembly dense_;
  std::vector<tensor::Tensor> rows_;
  uint64_t clock_ = UINT64_MAX;
  absl::Duration waited_;
};

// The worker or reader that pulls.
struct Puller {
  std::shared_ptr<const TrainingConnection> connection;
  CallLoop* loop;
  absl::optional<v1::WorkerId> worker;  // nullopt for a reader
  sparse::HashKey hash;
  // Returns the function that makes a worker a member again at a server. May be
  // empty.
  std::function<PatientCall::Rejoin(size_t server)> rejoin;
};

struct PullAnswer {
  uint64_t clock;  // for a push
  // True if the server has waited for the tables with the lowest staleness of
  // the model. No other wait of the step can be longer.
  bool waited_for_all;
};
// The answers, by server. nullopt for a server that was not asked, or has not
// answered.
using PullAnswers = std::vector<absl::optional<PullAnswer>>;

// A pull in progress. Queries all servers of the wanted tables concurrently. A
// pull of no tables makes all servers wait. The first error ends the pull, and
// later answers are dropped.
class PullCall {
 public:
  using Done = std::function<void(absl::StatusOr<Pulled>, const PullAnswers&)>;

  // Starts a pull, and calls back once. If the model lacks a table, starts
  // nothing and returns INVALID_ARGUMENT, which names the table.
  static absl::Status Start(const Puller& puller,
                            const std::vector<uint64_t>& clocks,
                            const PullSpec& spec, absl::Duration timeout,
                            Done done);

 private:
  struct State;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_PULL_H_
