#include "ps/client/pull.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/client/sparse_rows.h"
#include "tensor_service/message.h"
#include "tensor_service/prepared_destinations.h"
#include "transport/base/printable.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using tensor::Tensor;

constexpr size_t kMaxNameBytesShown = 100;

absl::Status NoSuchTable(absl::string_view table, absl::string_view kind) {
  return absl::InvalidArgumentError(
      absl::StrCat("pull: the model has no ", kind, " table ",
                   base::Printable(table, kMaxNameBytesShown)));
}

// Returns the indices of the wanted tables, or nullopt for all tables.
absl::StatusOr<absl::optional<std::vector<size_t>>> TablesOf(
    const Layout& layout, const PullSpec& spec) {
  if (spec.all_dense) return absl::optional<std::vector<size_t>>();
  std::vector<size_t> tables;
  tables.reserve(spec.dense.size());
  for (const std::string& name : spec.dense) {
    const absl::optional<size_t> at = layout.Find(name);
    if (!at.has_value()) return NoSuchTable(name, "dense");
    tables.push_back(*at);
  }
  std::sort(tables.begin(), tables.end());
  tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
  return absl::optional<std::vector<size_t>>(std::move(tables));
}

struct NamedRequest {
  std::string table;
  int64_t staleness;
  RowRequest request;
};

absl::StatusOr<std::vector<NamedRequest>> RowsOf(const Puller& puller,
                                                 const PullSpec& spec) {
  const TrainingConnection& connection = *puller.connection;
  std::vector<NamedRequest> rows;
  rows.reserve(spec.rows.size());
  for (const RowsWanted& wanted : spec.rows) {
    const TableSpec* const table = connection.model().Find(wanted.table);
    if (table == nullptr || table->is_dense()) {
      return NoSuchTable(wanted.table, "sparse");
    }
    for (const NamedRequest& other : rows) {
      if (other.table != wanted.table) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "pull: table ", base::Printable(wanted.table, kMaxNameBytesShown),
          " is requested twice; request all of its ids in one list"));
    }
    rows.push_back(
        {wanted.table, table->staleness,
         RowRequest(*connection.placement().Find(wanted.table),
                    connection.servers(), wanted.ids,
                    absl::get<SparseSpec>(table->rows).dim,
                    spec.dtype.value_or(tensor::DType::kF32), puller.hash)});
  }
  return rows;
}

}  // namespace

absl::StatusOr<Tensor> Pulled::Dense(absl::string_view table) const {
  const absl::optional<size_t> at = connection_->layout().Find(table);
  if (at.has_value() && dense_.Has(*at)) return dense_.Table(*at);
  return absl::NotFoundError(absl::StrCat(
      "table ", base::Printable(table, kMaxNameBytesShown), " was not pulled"));
}

tensor::Bundle Pulled::AllDense() const { return dense_.Tables(); }

// A pull in progress. Used in the loop's callbacks, except in Start().
struct PullCall::State : std::enable_shared_from_this<State> {
  // The state of the call to one server.
  struct AtServer {
    size_t server;
    std::vector<size_t> parts;
    bool has_rows = false;
    bool waits_for_all = false;
    std::vector<tensor::Destination> destinations;
    std::shared_ptr<tensor::PostedRanges> posted;
    CallLoop::Request request;
  };

  State(const Puller& the_puller, TableAssembly dense,
        std::vector<NamedRequest> the_rows)
      : puller(the_puller),
        result(the_puller.connection, std::move(dense)),
        rows(std::move(the_rows)),
        answered(the_puller.connection->servers()) {}

  const Puller puller;
  Pulled result;
  std::vector<NamedRequest> rows;
  PullAnswers answered;
  size_t left = 0;
  uint64_t lowest = 0;  // the lowest of the requested clocks
  Done done;

  absl::StatusOr<AtServer> Prepare(size_t server, uint64_t clock,
                                   const PullSpec& spec, absl::Time deadline);
  void Send(AtServer at);
  void OnReply(AtServer* at, CallLoop::Reply reply);
  absl::Status Read(AtServer* at, const grpc::ByteBuffer& reply);
  absl::Status Take(const AtServer& at, tensor::Bundle bundle);
  void Finish(absl::Status status);
};

absl::StatusOr<PullCall::State::AtServer> PullCall::State::Prepare(
    size_t server, uint64_t clock, const PullSpec& spec, absl::Time deadline) {
  const TrainingConnection& connection = *puller.connection;
  const std::vector<PlacedPart>& parts = connection.layout().parts();
  AtServer at;
  at.server = server;
  tensor::Message<v1::PullHeader> message;
  *message.header.mutable_view() = connection.view();
  if (puller.worker.has_value()) {
    *message.header.mutable_worker() = *puller.worker;
  }
  message.header.set_clock(clock);
  if (spec.dtype.has_value()) {
    message.header.set_dtype(static_cast<tensor::v1::DType>(*spec.dtype));
  }
  for (const size_t part : result.dense_.parts()) {
    if (parts[part].server == server) at.parts.push_back(part);
  }
  message.header.set_all_parts(spec.all_dense && !at.parts.empty());
  if (!message.header.all_parts()) {
    for (const size_t part : at.parts) {
      message.header.add_parts(parts[part].name);
    }
  }
  for (const size_t part : at.parts) {
    at.waits_for_all |= parts[part].staleness == connection.least_staleness();
  }
  for (const NamedRequest& named : rows) {
    if (!named.request.IsFor(static_cast<uint32_t>(server))) continue;
    at.has_rows = true;
    at.waits_for_all |= named.staleness == connection.least_staleness();
    auto ids = named.request.IdsFor(static_cast<uint32_t>(server));
    if (!ids.ok()) return ids.status();
    message.bundle.tensors.push_back({named.table, *std::move(ids)});
  }
  auto bytes = tensor::Encode(message);
  if (!bytes.ok()) return bytes.status();
  at.destinations = result.dense_.DestinationsOf(static_cast<uint32_t>(server));
  at.posted = tensor::Post(at.destinations, /*often=*/false);
  at.request = {connection.channels()[server],
                absl::StrCat(kServicePath, "Pull"),
                *std::move(bytes),
                deadline,
                at.posted,
                connection.route(server)};
  return at;
}

void PullCall::State::Send(AtServer at) {
  auto shared = std::make_shared<AtServer>(std::move(at));
  PatientCall::Start(
      puller.loop, shared->request,
      puller.rejoin ? puller.rejoin(shared->server) : PatientCall::Rejoin(),
      [self = shared_from_this(), shared](CallLoop::Reply reply, int) {
        self->OnReply(shared.get(), std::move(reply));
      },
      {[this, server = shared->server] {
        return absl::StrCat("pull for step ", lowest, ": ",
                            puller.connection->NameOf(server));
      }});
}

void PullCall::State::OnReply(AtServer* at, CallLoop::Reply reply) {
  if (!done) return;  // another server's error has ended the pull
  absl::Status status = reply.status();
  if (status.ok()) status = Read(at, *reply);
  if (!status.ok()) {
    return Finish(puller.connection->Explain(
        absl::StrCat("pull for step ", lowest), at->server, status));
  }
  if (--left == 0) Finish(result.dense_.Finish());
}

// Reads the values of a server's reply. Abandons destinations to which an
// earlier attempt may still write.
absl::Status PullCall::State::Read(AtServer* at,
                                   const grpc::ByteBuffer& reply) {
  absl::Span<tensor::Destination> destinations =
      absl::MakeSpan(at->destinations);
  if (at->posted != nullptr && at->posted->in_use() &&
      !tensor::LiesIn(reply, tensor::RangesOf(at->destinations))) {
    destinations = {};
    result.dense_.AbandonDestinations(static_cast<uint32_t>(at->server));
  }
  tensor::Message<v1::PullReplyHeader> message;
  absl::Status status = tensor::Decode(reply, &message, destinations);
  if (!status.ok()) return status;
  answered[at->server] = PullAnswer{message.header.clock(), at->waits_for_all};
  result.clock_ = std::min(result.clock_, message.header.clock());
  result.waited_ =
      std::max(result.waited_, absl::Microseconds(message.header.waited_us()));
  return Take(*at, std::move(message.bundle));
}

absl::Status PullCall::State::Take(const AtServer& at, tensor::Bundle bundle) {
  absl::flat_hash_map<absl::string_view, Tensor*> by_name;
  by_name.reserve(bundle.tensors.size());
  for (tensor::NamedTensor& named : bundle.tensors) {
    by_name.emplace(named.name, &named.tensor);
  }
  const auto find = [&by_name](const std::string& name) {
    auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  };
  absl::Status status;
  for (size_t i = 0; i < at.parts.size() && status.ok(); ++i) {
    const std::string& name =
        puller.connection->layout().parts()[at.parts[i]].name;
    Tensor* const part = find(name);
    if (part == nullptr) return absl::InternalError(name + " did not come");
    status = result.dense_.Take(at.parts[i], std::move(*part));
  }
  for (NamedRequest& named : rows) {
    const auto server = static_cast<uint32_t>(at.server);
    if (!status.ok() || !named.request.IsFor(server)) continue;
    Tensor* const came = find(named.table);
    if (came == nullptr) {
      return absl::InternalError(named.table + " did not come");
    }
    status = named.request.Take(server, std::move(*came));
  }
  return status;
}

void PullCall::State::Finish(absl::Status status) {
  result.rows_.reserve(rows.size());
  for (const NamedRequest& named : rows) {
    if (!status.ok()) break;
    absl::StatusOr<Tensor> all = named.request.Rows();
    status = all.status();
    if (all.ok()) result.rows_.push_back(*std::move(all));
  }
  const Done callback = std::exchange(done, nullptr);
  if (!status.ok()) return callback(status, answered);
  callback(std::move(result), answered);
}

absl::Status PullCall::Start(const Puller& puller,
                             const std::vector<uint64_t>& clocks,
                             const PullSpec& spec, absl::Duration timeout,
                             Done done) {
  const absl::Time deadline = base::SteadyNow() + timeout;
  auto tables = TablesOf(puller.connection->layout(), spec);
  if (!tables.ok()) return tables.status();
  auto rows = RowsOf(puller, spec);
  if (!rows.ok()) return rows.status();
  auto dense = TableAssembly::Create(&puller.connection->layout(),
                                     *std::move(tables), spec.dtype);
  if (!dense.ok()) return dense.status();
  auto state =
      std::make_shared<State>(puller, *std::move(dense), *std::move(rows));
  state->done = std::move(done);
  state->lowest = *std::min_element(clocks.begin(), clocks.end());
  std::vector<State::AtServer> calls;
  std::vector<State::AtServer> waits;
  for (size_t server = 0; server < clocks.size(); ++server) {
    auto at = state->Prepare(server, clocks[server], spec, deadline);
    if (!at.ok()) return at.status();
    const bool is_asked = at->has_rows || !at->parts.empty();
    (is_asked ? calls : waits).push_back(*std::move(at));
  }
  if (calls.empty()) {
    calls = std::move(waits);
    for (State::AtServer& at : calls) at.waits_for_all = true;
  }
  state->left = calls.size();  // set before any answer can come
  for (State::AtServer& at : calls) state->Send(std::move(at));
  return absl::OkStatus();
}

}  // namespace penstock::ps
