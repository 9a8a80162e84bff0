#include "tests/ps/service/raw_requests.h"

#include <map>

#include "ps/model/wire.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

constexpr uint64_t kRun = SmallServer::kView.run;

}  // namespace

Model ModelForRawRequests() {
  constexpr int64_t kUnlimited = ConsistencyPolicy::kUnlimited;
  Model model = {{DenseTable("w", {2}, kUnlimited),
                  DenseTable("s", {}, kUnlimited, tensor::DType::kF64),
                  DenseTable("h", {3}, kUnlimited, tensor::DType::kF16),
                  DenseTable("b", {100, 100}, 2, tensor::DType::kBF16),
                  DenseTable("none", {0, 4}, kUnlimited),
                  SparseTable("e", 2, kUnlimited), SparseTable("f", 3)}};
  for (TableSpec& table : model.tables) {
    if (!table.is_dense()) {
      absl::get<SparseSpec>(table.rows).budget_bytes = 20 << 20;
    }
  }
  return model;
}

std::string Requests::Next(const std::string& method) {
  std::string bytes = Chance(5) ? Noise(Below(200)) : Valid(method);
  for (uint64_t changes = Chance(40) ? 1 + Below(4) : 0; changes > 0;
       --changes) {
    Change(&bytes);
  }
  return bytes;
}

std::string Requests::Noise(size_t size) {
  std::string bytes(size, 0);
  for (char& byte : bytes) byte = static_cast<char>(random_());
  return bytes;
}

void Requests::Change(std::string* bytes) {
  const size_t at = Below(bytes->size() + 1);
  switch (Below(4)) {
    case 0:
      if (at < bytes->size()) (*bytes)[at] ^= static_cast<char>(1 + Below(255));
      return;
    case 1:
      return bytes->resize(at);
    case 2:
      bytes->insert(at, Noise(1 + Below(9)));
      return;
    case 3:
      bytes->insert(at, bytes->substr(Below(bytes->size() + 1), Below(50)));
      return;
  }
}

std::string Requests::Name() {
  return AnyOf<std::string>({"w", "s", "h", "b", "none", "e", "f", "pack 0",
                             "pack 1", "", "gone", std::string(1, '\0'),
                             "\xf0\x9f\x98\x80", std::string(5000, 'x')});
}

void Requests::Fill(v1::View* view) {
  view->set_run(Chance(90) ? kRun : Number());
  view->set_epoch(Chance(90) ? 1 : Number());
}

void Requests::Fill(v1::WorkerId* worker) {
  worker->set_rank(static_cast<uint32_t>(Chance(80) ? Below(4) : random_()));
  worker->set_incarnation(Below(3));
}

void Requests::Fill(tensor::v1::Tensor* tensor, int dtype,
                    std::vector<int64_t> shape) {
  static const std::map<int, size_t> kSizes = {{1, 4}, {2, 8}, {3, 2}, {4, 2},
                                               {5, 1}, {7, 4}, {8, 8}};
  if (Chance(3)) shape.push_back(static_cast<int64_t>(Number()));
  if (Chance(3)) dtype = static_cast<int>(random_());
  tensor->set_dtype(static_cast<tensor::v1::DType>(dtype));
  size_t bytes = kSizes.count(dtype) > 0 ? kSizes.at(dtype) : 1;
  for (const int64_t side : shape) {
    tensor->add_shape(side);
    bytes *= static_cast<size_t>(side);
  }
  if (bytes > 100000 || Chance(2)) bytes = Below(100);
  // Bytes of value 2 are a finite number in every type.
  tensor->set_data(Chance(10) ? Noise(bytes) : std::string(bytes, '\x02'));
}

void Requests::AddTensor(v1::PushRequest* request) {
  auto* const first = request->add_tensors();
  first->set_name(Name());
  const auto rows = static_cast<int64_t>(Below(5));
  switch (Below(4)) {
    case 0:  // a gradient of a part
      return Fill(first->mutable_tensor(), AnyOf({1, 2, 3, 4}),
                  AnyOf<std::vector<int64_t>>(
                      {{2}, {}, {3}, {100, 100}, {0, 4}, {5}, {6}}));
    case 1: {  // rows
      first->set_name(Chance(50) ? "e" : "f");
      Fill(first->mutable_tensor(), 8, {rows});
      auto* const second = request->add_tensors();
      second->set_name(first->name());
      return Fill(second->mutable_tensor(), AnyOf({1, 3, 4}),
                  {rows, first->name() == "e" ? 2 : 3});
    }
    case 2: {  // indices and elements
      Fill(first->mutable_tensor(), 7, {rows});
      auto* const second = request->add_tensors();
      second->set_name(first->name());
      return Fill(second->mutable_tensor(), AnyOf({1, 3, 4}), {rows});
    }
    case 3: {  // int8 and scales
      Fill(first->mutable_tensor(), 5,
           AnyOf<std::vector<int64_t>>({{2}, {}, {100, 100}}));
      auto* const second = request->add_tensors();
      second->set_name(first->name());
      return Fill(second->mutable_tensor(), 1, {AnyOf<int64_t>({1, 40, 0})});
    }
  }
}

v1::PushRequest Requests::AnyPush() {
  v1::PushRequest request;
  Fill(request.mutable_header()->mutable_view());
  Fill(request.mutable_header()->mutable_worker());
  request.mutable_header()->set_clock(Number());
  for (uint64_t i = Below(4); i > 0; --i) AddTensor(&request);
  return request;
}

std::string Requests::Valid(const std::string& method) {
  if (method == "Push") return AnyPush().SerializeAsString();
  if (method == "Initialize") {
    v1::PushRequest request = AnyPush();  // Initialize has the same fields
    request.mutable_header()->set_clock(0);
    return request.SerializeAsString();
  }
  if (method == "Pull") {
    v1::PullRequest request;
    *request.mutable_tensors() = AnyPush().tensors();
    v1::PullHeader* const header = request.mutable_header();
    Fill(header->mutable_view());
    if (Chance(50)) Fill(header->mutable_worker());
    header->set_clock(Number());
    header->set_all_parts(Chance(50));
    for (uint64_t i = Below(3); i > 0; --i) header->add_parts(Name());
    header->set_dtype(static_cast<tensor::v1::DType>(Below(6)));
    return request.SerializeAsString();
  }
  if (method == "Define") {
    v1::DefineRequest request;
    *request.mutable_model() = ToMessage(ModelForRawRequests());
    request.add_servers("ps0:1");
    request.set_server(static_cast<uint32_t>(Below(3)));
    request.set_run(Number());
    request.set_replaces(Number());
    if (Chance(50)) request.mutable_cut()->set_step(Number());
    if (Chance(20))
      request.mutable_model()->mutable_tables(0)->set_name(Name());
    return request.SerializeAsString();
  }
  if (method == "ChooseCut") {
    v1::ChooseCutRequest request;
    request.set_run(Number());
    return request.SerializeAsString();
  }
  if (method == "GetModel") return Chance(50) ? "" : "\x08\x01";
  if (method == "Describe") return "";
  if (method == "Attend") {
    v1::Heartbeat request;
    request.set_run(Chance(90) ? kRun : Number());
    Fill(request.mutable_worker());
    request.set_leaving(Chance(20));
    return request.SerializeAsString();
  }
  if (method == "Join") {
    v1::JoinRequest request;
    Fill(request.mutable_view());
    Fill(request.mutable_worker());
    return request.SerializeAsString();
  }
  return ForCheckpoint(method);
}

std::string Requests::ForCheckpoint(const std::string& method) {
  v1::CommitCheckpointRequest request;  // has what the others have, and more
  Fill(request.mutable_view());
  if (method == "BeginCheckpoint") {
    v1::BeginCheckpointRequest begin;
    *begin.mutable_view() = request.view();
    begin.set_incremental(Chance(50));
    begin.set_keep(Number());
    return begin.SerializeAsString();
  }
  if (method == "HoldSteps") {
    v1::HoldStepsRequest hold;
    *hold.mutable_view() = request.view();
    hold.set_release(Chance(50));
    return hold.SerializeAsString();
  }
  request.mutable_attempt()->set_step(Number());
  request.mutable_attempt()->set_id(Number());
  request.mutable_attempt()->set_incremental(Chance(50));
  request.mutable_attempt()->set_base_step(Number());
  if (method == "AttendCheckpoint") {
    v1::AttendCheckpointRequest attend;
    *attend.mutable_view() = request.view();
    *attend.mutable_attempt() = request.attempt();
    attend.set_give_up(Chance(50));
    return attend.SerializeAsString();
  }
  if (method == "WriteShard") {
    v1::WriteShardRequest write;
    *write.mutable_view() = request.view();
    *write.mutable_attempt() = request.attempt();
    if (Chance(50)) write.mutable_cut()->set_version(Number());
    if (Chance(50)) Fill(write.mutable_cut()->add_clocks()->mutable_worker());
    return write.SerializeAsString();
  }
  for (uint64_t i = Below(3); i > 0; --i) {
    v1::ShardInfo* const shard = request.add_shards();
    shard->set_shard(static_cast<uint32_t>(Number()));
    shard->set_bytes(Number());
    shard->set_checksum(Number());
    Fill(shard->add_clocks()->mutable_worker());
  }
  return request.SerializeAsString();
}

}  // namespace penstock::ps
