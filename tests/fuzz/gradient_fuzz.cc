// Tests compressed gradients from a peer. Each is refused, or decoded like by a
// simple loop.

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ps/compression/decompress.h"
#include "ps/optim/elements.h"
#include "ps/optim/workers.h"
#include "tensor_service/tensor.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace penstock {
namespace fuzz {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

// Takes the rank and the dimensions, one byte each.
Shape TakeShape(Input* input) {
  Shape shape(input->Number<uint8_t>() % 4);
  for (int64_t& dimension : shape) dimension = input->Number<uint8_t>();
  return shape;
}

// Takes the type, the shape, and the elements, at any alignment. Missing bytes
// are 0.
Tensor TakeTensor(Input* input) {
  const auto dtype = static_cast<DType>(1 + input->Number<uint8_t>() % 10);
  Shape shape = TakeShape(input);
  size_t size = *tensor::ByteSize(dtype, shape);
  if (size > 100'000) {
    shape = {0};
    size = 0;
  }
  const size_t odd = input->Number<uint8_t>() % 8;
  auto memory = std::make_shared<std::string>(odd + size, '\0');
  const auto bytes = input->Bytes(size);
  if (!bytes.empty()) std::memcpy(&(*memory)[odd], bytes.data(), bytes.size());
  return *Tensor::FromBuffer(
      dtype, shape, tensor::Buffer::Share(memory->data() + odd, size, memory));
}

template <typename T>
T At(const Tensor& tensor, size_t index) {
  T element;
  std::memcpy(&element, tensor.bytes().data() + index * sizeof(T), sizeof(T));
  return element;
}

bool IsSame(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

// Requires that each element of `made` equals the element of the list.
void CheckSparse(const std::vector<Tensor>& list, const Tensor& made) {
  size_t next = 0;
  for (size_t i = 0; i < made.num_elements(); ++i) {
    float expected = 0;
    if (next < list[0].num_elements() &&
        At<int32_t>(list[0], next) == static_cast<int64_t>(i)) {
      expected = static_cast<float>(ps::optim::ElementAt(
          list[1].dtype(), list[1].bytes().data(), next++));
    }
    Require(IsSame(At<float>(made, i), expected),
            "an element is where its index says");
  }
  Require(next == list[0].num_elements(), "each index is used");
}

void CheckInt8(const std::vector<Tensor>& list, const Tensor& made) {
  for (size_t i = 0; i < made.num_elements(); ++i) {
    const float expected = static_cast<float>(At<int8_t>(list[0], i)) *
                           At<float>(list[1], i / 256);
    Require(IsSame(At<float>(made, i), expected),
            "an element is int8 times scale");
  }
}

void Check(const Shape& shape, const std::vector<Tensor>& list,
           const Tensor& made) {
  Require(made.shape() == shape, "a gradient has the part's shape");
  if (list.size() == 1) {
    Require(made.bytes().data() == list[0].bytes().data(),
            "a single tensor is passed on");
    Require(ps::optim::IsFloating(made.dtype()), "a gradient is floating");
    return;
  }
  Require(list.size() == 2 && made.dtype() == DType::kF32,
          "two tensors become f32");
  list[0].dtype() == DType::kInt32 ? CheckSparse(list, made)
                                   : CheckInt8(list, made);
}

std::string SeedOf(std::string shape, const std::vector<std::string>& tensors) {
  std::string seed = std::move(shape);
  seed.push_back(static_cast<char>(tensors.size()));
  for (const std::string& tensor : tensors) seed += tensor;
  return seed;
}

std::string SeedTensor(DType dtype, const std::string& shape,
                       const std::string& elements) {
  return std::string(1, static_cast<char>(static_cast<int>(dtype) - 1)) +
         shape + std::string(1, '\0') + elements;
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string part = {'\2', '\2', '\3'};  // [2,3]
  const std::string one = {'\1', '\1'};
  const std::string two = {'\1', '\2'};
  const std::string f32(8, '\x3F');
  return {
      SeedOf(part, {SeedTensor(DType::kF32, part, std::string(24, '\1'))}),
      SeedOf(part, {SeedTensor(DType::kBF16, part, std::string(12, '\1'))}),
      SeedOf(part, {SeedTensor(DType::kInt32, two,
                               Number<int32_t>(1) + Number<int32_t>(5)),
                    SeedTensor(DType::kF32, two, f32)}),
      SeedOf(part, {SeedTensor(DType::kInt32, two,
                               Number<int32_t>(0) + Number<int32_t>(4)),
                    SeedTensor(DType::kF16, two, f32.substr(4))}),
      SeedOf(part, {SeedTensor(DType::kInt8, part, "abcdef"),
                    SeedTensor(DType::kF32, one, f32.substr(4))}),
  };
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const kWorkers = new penstock::ps::optim::Workers(1);
  penstock::fuzz::Input input(data, size);
  const penstock::tensor::Shape shape = penstock::fuzz::TakeShape(&input);
  std::vector<penstock::tensor::Tensor> list(input.Number<uint8_t>() % 4);
  for (auto& tensor : list) tensor = penstock::fuzz::TakeTensor(&input);
  const auto made =
      penstock::ps::compression::Decompress(shape, list, *kWorkers);
  if (made.ok()) {
    penstock::fuzz::Check(shape, list, *made);
  } else {
    penstock::fuzz::Require(
        made.status().code() == absl::StatusCode::kInvalidArgument,
        "what is no gradient is an invalid argument");
  }
  return 0;
}
