#include "ps/client/compression_coder.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "ps/optim/workers.h"

namespace penstock::ps {
namespace {

class CompressionCoder final : public GradientCoder {
 public:
  CompressionCoder(std::string table, const compression::CompressionSpec& spec)
      : table_(std::move(table)), spec_(spec) {}

  absl::StatusOr<std::vector<tensor::Tensor>> Encode(
      const tensor::Tensor& gradient, uint64_t step) override {
    if (compressor_ == nullptr) {
      auto made = compression::Compressor::Create(spec_, table_,
                                                  gradient.shape(), &workers_);
      if (!made.ok()) return made.status();
      compressor_ = *std::move(made);
    }
    return compressor_->Compress(gradient, step);
  }

  void TakeBack(absl::Span<const tensor::Tensor> sent) override {
    // Ignore the status: GiveBack() only fails for a list that the compressor
    // did not make.
    (void)compressor_->GiveBack(sent);
  }

 private:
  const std::string table_;
  const compression::CompressionSpec spec_;
  const optim::Workers workers_;
  std::unique_ptr<compression::Compressor> compressor_;
};

}  // namespace

std::unique_ptr<GradientCoder> MakeCompressionCoder(
    const std::string& table, const compression::CompressionSpec& spec) {
  return std::make_unique<CompressionCoder>(table, spec);
}

}  // namespace penstock::ps
