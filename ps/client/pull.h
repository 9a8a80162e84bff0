// What is asked for in a pull, and what comes.

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
#include "ps/client/connection.h"
#include "ps/client/dense_values.h"
#include "ps/client/patient_call.h"
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
  // Values of longer types are sent, and returned, in this one: kF16 or kBF16.
  absl::optional<tensor::DType> dtype;
};

// Values share memory with what was received, as long as they live: a peer's in
// this host, or the transport's. Tensor::Compact() frees them of it.
class Pulled {
 public:
  // The step that the values are for: of the servers that were asked, the
  // lowest. Higher than what was asked for, if the others are ahead.
  uint64_t clock() const { return clock_; }
  // How long servers have waited until values were fresh enough, at most.
  absl::Duration waited() const { return waited_; }

  // Returns the value of a dense table, for reading. A small one is a view of
  // the part it came in. A large one may not be aligned; see Tensor::Aligned().
  // Returns NOT_FOUND if it was not asked for.
  absl::StatusOr<tensor::Tensor> Dense(absl::string_view table) const;
  // Returns all dense values that were asked for. Takes about 0.1 us for each.
  tensor::Bundle AllDense() const;
  // Returns [n, dim]: a row for each id of PullSpec::rows[at], in their order.
  const tensor::Tensor& Rows(size_t at) const { return rows_[at]; }

 private:
  friend class PullCall;
  Pulled(std::shared_ptr<const Connection> connection, TableAssembly dense)
      : connection_(std::move(connection)), dense_(std::move(dense)) {}

  std::shared_ptr<const Connection> connection_;
  TableAssembly dense_;
  std::vector<tensor::Tensor> rows_;
  uint64_t clock_ = UINT64_MAX;
  absl::Duration waited_;
};

// Who pulls.
struct Puller {
  std::shared_ptr<const Connection> connection;
  CallLoop* loop;
  absl::optional<v1::WorkerId> worker;  // none: a reader
  sparse::HashKey hash;
  // Makes a worker a member again; may be empty.
  std::function<PatientCall::Rejoin(size_t server)> rejoin;
};

struct PullAnswer {
  uint64_t clock;  // for a push
  // Whether it has waited for the tables of the model's least staleness, and so
  // for all that a step can wait for.
  bool waited_for_all;
};
// By server; none: it was not asked, or has not answered.
using PullAnswers = std::vector<absl::optional<PullAnswer>>;

// A pull under way. Asks all servers that have some of it side by side; if
// nothing is asked for, asks all to wait. The first error ends it; what servers
// answer after that is dropped.
class PullCall {
 public:
  using Done = std::function<void(absl::StatusOr<Pulled>, const PullAnswers&)>;

  // Returns INVALID_ARGUMENT, which names the table, for what the model does
  // not have; nothing was started then. Else calls back once.
  static absl::Status Start(const Puller& puller,
                            const std::vector<uint64_t>& clocks,
                            const PullSpec& spec, absl::Duration timeout,
                            Done done);

 private:
  struct State;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_PULL_H_
