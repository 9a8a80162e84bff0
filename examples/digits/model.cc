#include "examples/digits/model.h"

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock::digits {
namespace {

using ConstMap = Eigen::Map<const Matrix>;

constexpr size_t kVariables = 6;
constexpr std::array<const char*, kVariables> kNames = {"w1", "b1", "w2",
                                                        "b2", "w3", "b3"};

// The network's variables as matrices, which share the bundle's memory.
class View {
 public:
  static absl::StatusOr<View> Of(const tensor::Bundle& bundle) {
    View view;
    if (bundle.tensors.size() != kVariables) {
      return absl::InvalidArgumentError("model: wrong number of variables");
    }
    for (const tensor::NamedTensor& named : bundle.tensors) {
      absl::StatusOr<tensor::Tensor> aligned = named.tensor.Aligned();
      if (!aligned.ok()) return aligned.status();
      view.tensors_.push_back(*std::move(aligned));
    }
    return view.Check();
  }

  // Returns a variable as a matrix. A bias is a matrix of one row.
  ConstMap operator[](size_t at) const {
    const tensor::Tensor& tensor = tensors_[at];
    return ConstMap(reinterpret_cast<const float*>(tensor.bytes().data()),
                    tensor.shape().size() == 2 ? tensor.shape()[0] : 1,
                    tensor.shape().back());
  }

 private:
  absl::StatusOr<View> Check() {
    const tensor::Shape& first = tensors_[0].shape();
    int64_t hidden = first.size() == 2 ? first[1] : 0;
    const std::vector<Variable> wanted = Variables(hidden);
    for (size_t at = 0; at < kVariables; ++at) {
      if (tensors_[at].dtype() != tensor::DType::kF32 ||
          tensors_[at].shape() != wanted[at].shape || hidden == 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "model: ", kNames[at], " is ", tensors_[at].ToString()));
      }
    }
    return std::move(*this);
  }

  std::vector<tensor::Tensor> tensors_;
};

struct Activations {
  Matrix hidden1;
  Matrix hidden2;
  Matrix logits;
};

Matrix Layer(const Matrix& input, const ConstMap& weight,
             const ConstMap& bias) {
  Matrix output(input.rows(), weight.cols());
  output.noalias() = input * weight;
  output.rowwise() += bias.row(0);
  return output;
}

Activations Forward(const View& v, const Matrix& input) {
  Activations a;
  a.hidden1 = Layer(input, v[0], v[1]).cwiseMax(0.0F);
  a.hidden2 = Layer(a.hidden1, v[2], v[3]).cwiseMax(0.0F);
  a.logits = Layer(a.hidden2, v[4], v[5]);
  return a;
}

// Replaces the logits by the gradient of the mean loss. Returns the mean loss.
float SoftmaxCrossEntropy(const std::vector<int>& labels, Matrix* logits) {
  float loss = 0;
  const float share = 1.0F / static_cast<float>(labels.size());
  for (Eigen::Index row = 0; row < logits->rows(); ++row) {
    auto values = logits->row(row);
    values.array() -= values.maxCoeff();
    float label = values(labels[row]);
    values = values.array().exp();
    float sum = values.sum();
    loss += (std::log(sum) - label) * share;
    values *= share / sum;
    values(labels[row]) -= share;
  }
  return loss;
}

template <typename Value>
absl::Status Append(size_t at, const Value& value, tensor::Shape shape,
                    tensor::Bundle* bundle) {
  auto tensor = tensor::Tensor::Allocate(tensor::DType::kF32, std::move(shape));
  if (!tensor.ok()) return tensor.status();
  auto memory = tensor->mutable_flat<float>();
  if (!memory.ok()) return memory.status();
  Eigen::Map<Matrix>(memory->data(), value.rows(), value.cols()).noalias() =
      value;
  bundle->tensors.push_back({kNames[at], *std::move(tensor)});
  return absl::OkStatus();
}

// Appends the gradients of one layer's weight and bias to the bundle.
absl::Status AppendLayer(size_t at, const Matrix& input, const Matrix& delta,
                         tensor::Bundle* bundle) {
  absl::Status status = Append(at, input.transpose() * delta,
                               {input.cols(), delta.cols()}, bundle);
  if (!status.ok()) return status;
  return Append(at + 1, delta.colwise().sum(), {delta.cols()}, bundle);
}

// Returns the error (delta) before the relu of a layer whose outputs after the
// relu are `output`.
Matrix Backward(const Matrix& delta, const ConstMap& weight,
                const Matrix& output) {
  Matrix back = delta * weight.transpose();
  return back.cwiseProduct((output.array() > 0.0F).cast<float>().matrix());
}

}  // namespace

std::vector<Variable> Variables(int64_t hidden) {
  const std::array<tensor::Shape, kVariables> shapes = {
      tensor::Shape{kPixels, hidden},
      {hidden},
      {hidden, hidden},
      {hidden},
      {hidden, kClasses},
      {kClasses}};
  std::vector<Variable> variables;
  variables.reserve(kVariables);
  for (size_t at = 0; at < kVariables; ++at) {
    variables.push_back({kNames[at], shapes[at]});
  }
  return variables;
}

ps::Model ModelOf(int64_t hidden, const TrainingOptions& options) {
  ps::Model model;
  for (Variable& variable : Variables(hidden)) {
    ps::TableSpec table;
    table.name = std::move(variable.name);
    table.rows = ps::DenseSpec{tensor::DType::kF32, std::move(variable.shape)};
    table.optimizer.rule = ps::optim::Rule::kSgd;
    table.optimizer.schedule.learning_rate = options.learning_rate;
    table.staleness = options.staleness;
    model.tables.push_back(std::move(table));
  }
  return model;
}

absl::StatusOr<tensor::Bundle> InitialValues(int64_t hidden, uint32_t seed) {
  std::mt19937 random(seed);
  tensor::Bundle bundle;
  for (const Variable& variable : Variables(hidden)) {
    auto tensor = tensor::Tensor::Allocate(tensor::DType::kF32, variable.shape);
    if (!tensor.ok()) return tensor.status();
    auto values = tensor->mutable_flat<float>();
    if (!values.ok()) return values.status();
    bool is_bias = variable.shape.size() == 1;
    float deviation =
        is_bias ? 0 : std::sqrt(2.0F / static_cast<float>(variable.shape[0]));
    std::normal_distribution<float> normal(0, 1);
    for (float& value : *values) value = deviation * normal(random);
    bundle.tensors.push_back({variable.name, *std::move(tensor)});
  }
  return bundle;
}

absl::StatusOr<Gradients> ComputeGradients(const tensor::Bundle& variables,
                                           const Images& batch) {
  absl::StatusOr<View> v = View::Of(variables);
  if (!v.ok()) return v.status();
  Activations a = Forward(*v, batch.pixels);
  Gradients gradients;
  gradients.loss = SoftmaxCrossEntropy(batch.labels, &a.logits);
  Matrix delta2 = Backward(a.logits, (*v)[4], a.hidden2);
  Matrix delta1 = Backward(delta2, (*v)[2], a.hidden1);
  absl::Status status = AppendLayer(0, batch.pixels, delta1, &gradients.bundle);
  if (status.ok()) {
    status = AppendLayer(2, a.hidden1, delta2, &gradients.bundle);
  }
  if (status.ok()) {
    status = AppendLayer(4, a.hidden2, a.logits, &gradients.bundle);
  }
  if (!status.ok()) return status;
  return gradients;
}

absl::StatusOr<double> Accuracy(const tensor::Bundle& variables,
                                const Images& images) {
  absl::StatusOr<View> v = View::Of(variables);
  if (!v.ok()) return v.status();
  Activations a = Forward(*v, images.pixels);
  size_t right = 0;
  for (Eigen::Index row = 0; row < a.logits.rows(); ++row) {
    Eigen::Index best;
    a.logits.row(row).maxCoeff(&best);
    right += best == images.labels[row] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(images.labels.size());
}

}  // namespace penstock::digits
