#include "python/ps_model.h"

#include <pybind11/pybind11.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ps/client/compression_coder.h"
#include "ps/compression/compressor.h"
#include "ps/optim/workers.h"
#include "python/arguments.h"
#include "python/arrays.h"
#include "python/dtypes.h"
#include "python/errors.h"
#include "tensor_service/tensor.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
namespace compression = ps::compression;
namespace optim = ps::optim;
namespace sparse = ps::sparse;
using compression::CompressionSpec;
using optim::Schedule;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kMost32 = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMostStaleness = ps::ConsistencyPolicy::kUnlimited;

// The attributes of an object of penstock/_ps_model.py, by name.
class Fields {
 public:
  // Reads the fields of `object`. `name` names the object in messages, such as
  // "table emb".
  Fields(py::handle object, std::string name)
      : object_(py::reinterpret_borrow<py::object>(object)),
        name_(std::move(name)) {}

  std::string NameOf(const char* field) const {
    return absl::StrCat(name_, ": ", field);
  }
  py::object Get(const char* field) const { return object_.attr(field); }
  std::string Str(const char* field) const {
    return StrOf(Get(field), NameOf(field));
  }
  uint64_t Whole(const char* field, uint64_t most = kMost) const {
    return WholeOf(Get(field), NameOf(field), most);
  }
  // Converts a field to a number. Leaves `to` unchanged if there is no such
  // field.
  void Number(const char* field, double* to) const {
    if (Has(field)) *to = NumberOf(Get(field), NameOf(field));
  }
  bool Has(const char* field) const {
    return py::hasattr(object_, field) && !Get(field).is_none();
  }

  // Returns an attribute whose own attribute `kind` names its kind.
  Fields Object(const char* field, const char* kind,
                const std::string& wanted) const {
    py::object value = Get(field);
    if (!py::hasattr(value, kind) || py::isinstance<py::type>(value)) {
      ThrowType(value, NameOf(field), wanted);
    }
    return Fields(value, NameOf(field));
  }

 private:
  const py::object object_;
  const std::string name_;
};

tensor::DType DTypeOf(const Fields& fields) {
  const py::object named = fields.Get("dtype");
  try {
    absl::StatusOr<tensor::DType> dtype = ParseDType(named);
    if (dtype.ok()) return *dtype;
  } catch (py::error_already_set&) {  // numpy's error names no field
  }
  ThrowValue(named, fields.NameOf("dtype"), "\"f32\", \"bf16\" or another one");
}

// Returns the enum value for a field's text. Throws an error that lists the
// valid texts.
template <typename Enum>
Enum Choice(const Fields& fields, const char* field,
            const std::map<std::string, Enum>& values) {
  const auto found = values.find(fields.Str(field));
  if (found != values.end()) return found->second;
  std::string wanted;
  for (const auto& [name, value] : values) {
    absl::StrAppend(&wanted, wanted.empty() ? "" : " or ", "\"", name, "\"");
  }
  ThrowValue(fields.Get(field), fields.NameOf(field), wanted);
}

Schedule ScheduleOf(const Fields& optimizer) {
  Schedule schedule;
  const py::object rate = optimizer.Get("learning_rate");
  if (!py::hasattr(rate, "kind")) {
    schedule.learning_rate = NumberOf(rate, optimizer.NameOf("learning_rate"));
    return schedule;
  }
  const Fields fields = optimizer.Object("learning_rate", "kind", "a schedule");
  schedule.kind =
      Choice<Schedule::Kind>(fields, "kind",
                             {{"constant", Schedule::Kind::kConstant},
                              {"step", Schedule::Kind::kStep},
                              {"cosine", Schedule::Kind::kCosine}});
  fields.Number("learning_rate", &schedule.learning_rate);
  schedule.warm_up_steps = fields.Whole("warm_up_steps");
  if (fields.Has("every")) schedule.every = fields.Whole("every");
  fields.Number("factor", &schedule.factor);
  fields.Number("final_rate", &schedule.final_rate);
  return schedule;
}

optim::OptimizerConfig OptimizerOf(const Fields& table) {
  const Fields fields =
      table.Object("optimizer", "rule", "an optimizer, such as ps.Sgd(0.1)");
  optim::OptimizerConfig config;
  config.rule = ValueOf(optim::RuleNamed(fields.Str("rule")));
  config.schedule = ScheduleOf(fields);
  fields.Number("weight_decay", &config.weight_decay);
  fields.Number("clip_value", &config.clip_value);
  fields.Number("momentum", &config.momentum);
  fields.Number("decay", &config.decay);
  fields.Number("beta1", &config.beta1);
  fields.Number("beta2", &config.beta2);
  fields.Number("epsilon", &config.epsilon);
  fields.Number("ftrl_beta", &config.ftrl_beta);
  fields.Number("lambda1", &config.lambda1);
  fields.Number("lambda2", &config.lambda2);
  fields.Number("initial_accumulator", &config.initial_accumulator);
  return config;
}

ps::DenseSpec DenseOf(const Fields& fields) {
  ps::DenseSpec spec;
  spec.dtype = DTypeOf(fields);
  const py::object shape = fields.Get("shape");
  constexpr uint64_t kMostDimension = std::numeric_limits<int64_t>::max();
  if (PyIndex_Check(shape.ptr()) != 0) {
    spec.shape = {static_cast<int64_t>(fields.Whole("shape", kMostDimension))};
    return spec;
  }
  if (py::isinstance<py::str>(shape) || !py::hasattr(shape, "__iter__")) {
    ThrowType(shape, fields.NameOf("shape"), "dimensions, such as [64, 10]");
  }
  for (py::handle dimension : py::iter(shape)) {
    spec.shape.push_back(static_cast<int64_t>(
        WholeOf(dimension, fields.NameOf("shape"), kMostDimension)));
  }
  return spec;
}

sparse::Initial InitialOf(const Fields& table) {
  using Kind = sparse::Initial::Kind;
  const Fields fields = table.Object("initial", "kind",
                                     "ps.Zeros(), ps.Uniform() or ps.Normal()");
  sparse::Initial initial;
  initial.kind = Choice<Kind>(fields, "kind",
                              {{"zeros", Kind::kZeros},
                               {"uniform", Kind::kUniform},
                               {"normal", Kind::kNormal}});
  const auto read = [&fields](const char* field, float* to) {
    double number = *to;
    fields.Number(field, &number);
    *to = static_cast<float>(number);
  };
  read("low", &initial.low);
  read("high", &initial.high);
  read("mean", &initial.mean);
  read("stddev", &initial.stddev);
  return initial;
}

ps::SparseSpec SparseOf(const Fields& fields) {
  ps::SparseSpec spec;
  spec.dim = static_cast<uint32_t>(fields.Whole("dim", kMost32));
  spec.initial = InitialOf(fields);
  spec.seed = fields.Whole("seed");
  spec.min_count = static_cast<uint32_t>(fields.Whole("min_count", kMost32));
  spec.time_to_live =
      SecondsOf(fields.Get("time_to_live"), fields.NameOf("time_to_live"));
  spec.max_rows = fields.Whole("max_rows");
  spec.budget_bytes = fields.Whole("budget_bytes");
  spec.above_budget =
      Choice<sparse::AboveBudget>(fields, "above_budget",
                                  {{"refuse", sparse::AboveBudget::kRefuse},
                                   {"evict", sparse::AboveBudget::kEvict},
                                   {"spill", sparse::AboveBudget::kSpill}});
  return spec;
}

ps::TableSpec TableOf(py::handle table, size_t at) {
  const std::string place = absl::StrCat("model[", at, "]");
  if (!py::hasattr(table, "kind") || !py::hasattr(table, "optimizer")) {
    ThrowType(table, place, "ps.Dense() or ps.Sparse()");
  }
  ps::TableSpec spec;
  spec.name = Fields(table, place).Str("name");
  const Fields fields(table, absl::StrCat("table ", spec.name));
  if (fields.Str("kind") == "dense") {
    spec.rows = DenseOf(fields);
  } else {
    spec.rows = SparseOf(fields);
  }
  spec.optimizer = OptimizerOf(fields);
  spec.staleness =
      static_cast<int64_t>(fields.Whole("staleness", kMostStaleness));
  spec.backup_workers =
      static_cast<uint32_t>(fields.Whole("backup_workers", kMost32));
  return spec;
}

CompressionSpec CompressionOf(const Fields& fields, uint32_t rank) {
  using Kind = CompressionSpec::Kind;
  CompressionSpec spec;
  spec.kind = Choice<Kind>(fields, "kind",
                           {{"half", Kind::kHalf},
                            {"top_k", Kind::kTopK},
                            {"random_k", Kind::kRandomK},
                            {"int8", Kind::kInt8}});
  if (fields.Has("dtype")) spec.dtype = DTypeOf(fields);
  fields.Number("ratio", &spec.ratio);
  // Uses the rank as the default seed, because independent errors of the
  // workers partly cancel in the mean.
  spec.seed = fields.Has("seed") ? fields.Whole("seed") : rank;
  return spec;
}

// Checks a compression, so that errors are reported now, and not at the first
// push.
void Check(const std::string& table, const CompressionSpec& spec) {
  const optim::Workers workers;
  const absl::Status status =
      compression::Compressor::Create(spec, table, {1}, &workers).status();
  if (status.ok()) return;
  Throw(absl::Status(status.code(),
                     absl::StrCat("compression: ", status.message())));
}

}  // namespace

ps::Model ModelOf(py::handle tables) {
  if (py::isinstance<py::str>(tables) || !py::hasattr(tables, "__iter__")) {
    ThrowType(tables, "model", "a list of ps.Dense() and ps.Sparse()");
  }
  ps::Model model;
  for (py::handle table : py::iter(tables)) {
    model.tables.push_back(TableOf(table, model.tables.size()));
  }
  const absl::Status status = ps::CheckModel(model);
  if (!status.ok()) Throw(status);
  return model;
}

py::tuple TablesOf(const ps::Model& model) {
  const py::object make =
      py::module_::import("penstock._ps_model").attr("Table");
  py::list tables;
  for (const ps::TableSpec& table : model.tables) {
    const auto* dense = absl::get_if<ps::DenseSpec>(&table.rows);
    const tensor::Shape shape =
        dense != nullptr
            ? dense->shape
            : tensor::Shape{absl::get<ps::SparseSpec>(table.rows).dim};
    const auto dtype = dense != nullptr ? dense->dtype : tensor::DType::kF32;
    tables.append(make(table.name, dense != nullptr ? "dense" : "sparse",
                       std::string(tensor::Name(dtype)), TupleOf(shape),
                       std::string(optim::Name(table.optimizer.rule)),
                       table.staleness));
  }
  return tables;
}

ps::MakeGradientCoder CodersOf(py::handle compression, uint32_t rank) {
  if (compression.is_none()) return nullptr;
  std::map<std::string, CompressionSpec> specs;
  for (const auto& [key, value] : DictOf(compression, "compression")) {
    const std::string table = StrOf(key, "compression: the name of a table");
    const std::string name = absl::StrCat("compression of ", table);
    if (!py::hasattr(value, "kind") || py::isinstance<py::type>(value)) {
      ThrowType(value, name, "ps.Half(), TopK(), RandomK() or Int8()");
    }
    specs[table] = CompressionOf(Fields(value, name), rank);
    Check(table, specs[table]);
  }
  return [specs](const std::string& table, const ps::PlacedPart&)
             -> absl::StatusOr<std::unique_ptr<ps::GradientCoder>> {
    const auto found = specs.find(table);
    if (found == specs.end()) return nullptr;
    return ps::MakeCompressionCoder(table, found->second);
  };
}

}  // namespace penstock::python
