// Tests random programs of workers and servers, against plain maps.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/client/reader.h"
#include "ps/client/worker.h"
#include "tests/ps/client/cluster.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

using tensor::Tensor;

constexpr uint64_t kIds = 20;
// A size above which placement splits a table.
constexpr int64_t kSplitRows = 300000;

Tensor TensorOf(tensor::Shape shape, const std::vector<float>& values) {
  return *Tensor::Of<float>(std::move(shape), values);
}

std::vector<float> Elements(const Tensor& tensor) {
  std::vector<float> elements(tensor.num_elements());
  std::memcpy(elements.data(), tensor.bytes().data(), tensor.byte_size());
  return elements;
}

// The expected values, which a simple loop computes from the sums of gradients.
// Values are small integers, exact in any order of additions and in bf16.
struct Oracle {
  std::map<std::string, std::vector<float>> dense;
  std::map<std::string, std::map<uint64_t, std::vector<float>>> rows;

  void Subtract(const StepGradients& gradients) {
    for (const tensor::NamedTensor& named : gradients.dense.tensors) {
      const std::vector<float> by = Elements(named.tensor);
      std::vector<float>& value = dense[named.name];
      for (size_t i = 0; i < by.size(); ++i) value[i] -= by[i];
    }
    for (const GradientRows& each : gradients.rows) {
      const std::vector<float> by = Elements(each.gradients);
      const size_t dim = each.ids.empty() ? 0 : by.size() / each.ids.size();
      for (size_t i = 0; i < by.size(); ++i) {
        auto& row = rows[each.table][each.ids[i / dim]];
        row.resize(dim);
        row[i % dim] -= by[i];
      }
    }
  }
};

class Program {
 public:
  explicit Program(uint64_t seed)
      : random_(seed),
        is_synchronous_(Below(2) == 0),
        cluster_(1 + Below(3), 1),
        workers_(is_synchronous_ ? 1 : 1 + Below(3)) {}

  void Run() {
    MakeModel();
    auto defined = Define(cluster_.DefinitionOf(model_));
    ASSERT_TRUE(defined.ok()) << defined.status();
    std::vector<std::unique_ptr<Worker>> workers;
    for (uint32_t rank = 0; rank < workers_; ++rank) {
      Worker::Options options;
      options.connection = defined->connection;
      options.rank = rank;
      auto worker = Worker::Join(std::move(options));
      ASSERT_TRUE(worker.ok()) << worker.status();
      workers.push_back(*std::move(worker));
    }
    ASSERT_TRUE(workers[0]->Initialize(FirstValues()).ok());
    for (uint64_t step = 0; step < 6; ++step) {
      for (auto& worker : workers) Step(worker.get(), step);
      if (testing::Test::HasFailure()) return;
    }
    for (auto& worker : workers) worker->Leave();
    Check(workers[0]->connection());
  }

 private:
  uint64_t Below(uint64_t limit) { return random_() % limit; }
  float Small() { return static_cast<float>(Below(5)) - 2; }
  std::vector<float> SmallOnes(size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = Small();
    return values;
  }

  void MakeModel() {
    const int64_t staleness =
        is_synchronous_ ? 0 : ConsistencyPolicy::kUnlimited;
    const uint64_t dense = 1 + Below(12);
    for (uint64_t i = 0; i < dense; ++i) {
      tensor::Shape shape;
      for (uint64_t rank = Below(4); rank > 0; --rank) {
        shape.push_back(static_cast<int64_t>(Below(12)));
      }
      if (Below(6) == 0) shape = {static_cast<int64_t>(4000 + Below(4000)), 2};
      model_.tables.push_back(
          DenseSpecOf(absl::StrCat("dense", i), shape, staleness));
    }
    if (Below(4) == 0) {
      model_.tables.push_back(DenseSpecOf("split", {kSplitRows, 5}, staleness));
    }
    for (uint64_t i = Below(3); i > 0; --i) {
      model_.tables.push_back(SparseSpecOf(absl::StrCat("rows", i),
                                           static_cast<uint32_t>(1 + Below(9)),
                                           staleness));
    }
  }

  tensor::Bundle FirstValues() {
    tensor::Bundle bundle;
    for (const TableSpec& table : model_.tables) {
      if (!table.is_dense()) continue;
      bundle.tensors.push_back({table.name, DenseGradient(table)});
      oracle_.dense[table.name] = Elements(bundle.tensors.back().tensor);
    }
    return bundle;
  }

  Tensor DenseGradient(const TableSpec& table) {
    const tensor::Shape& shape = absl::get<DenseSpec>(table.rows).shape;
    const size_t elements = *tensor::ByteSize(tensor::DType::kF32, shape) / 4;
    return TensorOf(shape, SmallOnes(elements));
  }

  // Returns true if the table shares no pack, and may thus be left out.
  static bool IsAlone(const Layout& layout, const std::string& table) {
    for (const PieceAt& at : layout.tables()[*layout.Find(table)].pieces) {
      if (layout.parts()[at.part].is_pack()) return false;
    }
    return true;
  }

  std::vector<uint64_t> SomeIds() {
    std::vector<uint64_t> ids(Below(30));
    for (uint64_t& id : ids) id = Below(kIds) * 0x9e3779b97f4a7c15;
    return ids;
  }

  StepGradients SomeGradients(const Layout& layout) {
    StepGradients gradients;
    const bool some_are_left_out = Below(2) == 0;
    for (const TableSpec& table : model_.tables) {
      const bool is_left_out = some_are_left_out && Below(3) == 0;
      if (table.is_dense()) {
        if (is_left_out && IsAlone(layout, table.name)) continue;
        gradients.dense.tensors.push_back({table.name, DenseGradient(table)});
        continue;
      }
      if (is_left_out) continue;
      const auto dim = absl::get<SparseSpec>(table.rows).dim;
      GradientRows rows{table.name, SomeIds(), {}};
      const auto count = static_cast<int64_t>(rows.ids.size());
      rows.gradients = TensorOf({count, dim}, SmallOnes(count * dim));
      gradients.rows.push_back(std::move(rows));
    }
    std::shuffle(gradients.dense.tensors.begin(), gradients.dense.tensors.end(),
                 random_);
    return gradients;
  }

  void Step(Worker* worker, uint64_t step) {
    PullSpec spec = SomeSpec();
    auto pulled = worker->Pull(step, spec);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    if (is_synchronous_) Compare(*pulled, spec);
    const StepGradients gradients =
        SomeGradients(worker->connection().layout());
    auto pushed = worker->Push(step, gradients);
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    ASSERT_TRUE(pushed->counted());
    oracle_.Subtract(gradients);
  }

  PullSpec SomeSpec() {
    PullSpec spec;
    spec.all_dense = Below(2) == 0;
    for (const TableSpec& table : model_.tables) {
      if (Below(2) == 0) continue;
      if (!table.is_dense()) {
        spec.rows.push_back({table.name, SomeIds()});
      } else if (!spec.all_dense) {
        spec.dense.push_back(table.name);
      }
    }
    return spec;
  }

  void Compare(const Pulled& pulled, const PullSpec& spec) {
    for (const tensor::NamedTensor& named : pulled.AllDense().tensors) {
      ASSERT_EQ(Elements(named.tensor), oracle_.dense[named.name])
          << named.name;
    }
    for (size_t i = 0; i < spec.rows.size(); ++i) {
      const RowsWanted& wanted = spec.rows[i];
      std::vector<float> expected;
      const TableSpec& table = *model_.Find(wanted.table);
      for (const uint64_t id : wanted.ids) {
        std::vector<float> row = oracle_.rows[wanted.table][id];
        row.resize(absl::get<SparseSpec>(table.rows).dim);
        expected.insert(expected.end(), row.begin(), row.end());
      }
      ASSERT_EQ(Elements(pulled.Rows(i)), expected) << wanted.table;
    }
  }

  // Checks all values, after all accepted pushes are applied.
  void Check(const TrainingConnection& connection) {
    for (size_t server = 0; server < connection.servers(); ++server) {
      while (cluster_.core(server).report().held_bytes > 0) {
        std::this_thread::yield();
      }
    }
    TrainingConnection::Options open;
    open.servers = cluster_.Channels();
    Reader reader(*TrainingConnection::Open(open));
    PullSpec spec;
    for (const TableSpec& table : model_.tables) {
      if (table.is_dense()) continue;
      spec.rows.push_back({table.name, {}});
      for (uint64_t i = 0; i < kIds; ++i) {
        spec.rows.back().ids.push_back(i * 0x9e3779b97f4a7c15);
      }
    }
    auto pulled = reader.Pull(0, spec, absl::Minutes(1));
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    Compare(*pulled, spec);
  }

  std::mt19937_64 random_;
  const bool is_synchronous_;
  Cluster cluster_;
  const uint64_t workers_;
  Model model_;
  Oracle oracle_;
};

TEST(RandomProgramTest, ServersHaveWhatPlainMapsHave) {
  RunEachSeed([](uint64_t seed) { Program(seed).Run(); });
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 40);
}
