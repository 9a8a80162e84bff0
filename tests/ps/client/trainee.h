// A worker whose connections break all the time. Records its pushes.

#ifndef PENSTOCK_TESTS_PS_CLIENT_TRAINEE_H_
#define PENSTOCK_TESTS_PS_CLIENT_TRAINEE_H_

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/client/compression_coder.h"
#include "ps/client/worker.h"
#include "tests/ps/client/cluster.h"
#include "tests/transport/rpc/cutting_proxy.h"

namespace penstock::ps {

// The minimum number of bytes that a connection carries before it breaks.
// Enough for a greeting, a join and any one call, so that each connection makes
// some progress.
inline constexpr size_t kShortest = 4500;
inline constexpr size_t kMore = 2000;
// The lease of a worker. Also limits the wait for a worker that leaves while
// its connection breaks.
inline constexpr absl::Duration kLease = absl::Seconds(2);
inline constexpr uint64_t kSteps = 25;
inline constexpr int64_t kKernels = 3;
inline constexpr int64_t kElements = 60;  // of a kernel
// The share of elements in one push. Four pushes send all elements.
inline constexpr double kRatio = 0.25;
inline constexpr uint64_t kFlushes = 4;
inline constexpr int64_t kDense = 20;

inline std::string Kernel(int64_t i) { return absl::StrCat("kernel", i); }

inline std::vector<float> Elements(const tensor::Tensor& tensor) {
  std::vector<float> elements(tensor.num_elements());
  std::memcpy(elements.data(), tensor.bytes().data(), tensor.byte_size());
  return elements;
}

inline tensor::Tensor Filled(tensor::Shape shape, size_t elements,
                             float value) {
  return *tensor::Tensor::Of<float>(std::move(shape),
                                    std::vector<float>(elements, value));
}

// A coder that records the sent gradients.
class NotingCoder final : public GradientCoder {
 public:
  // The sent gradients by step, as the server decodes them.
  using Sent = std::map<uint64_t, std::vector<float>>;

  NotingCoder(std::unique_ptr<GradientCoder> coder, Sent* sent)
      : coder_(std::move(coder)), sent_(sent) {}

  absl::StatusOr<std::vector<tensor::Tensor>> Encode(
      const tensor::Tensor& gradient, uint64_t step) override {
    auto list = coder_->Encode(gradient, step);
    if (!list.ok()) return list;
    std::vector<float>& dense = (*sent_)[step];
    dense.resize(kElements);
    const auto indices = *(*list)[0].flat<int32_t>();
    const auto values = *(*list)[1].flat<float>();
    for (size_t i = 0; i < indices.size(); ++i) dense[indices[i]] = values[i];
    return list;
  }
  void TakeBack(absl::Span<const tensor::Tensor> sent) override {
    coder_->TakeBack(sent);
  }

 private:
  const std::unique_ptr<GradientCoder> coder_;
  Sent* const sent_;
};

// Repeats `call` until one connection lasts for the whole call.
template <typename Call>
auto UntilItLasts(const Call& call) {
  auto result = call();
  while (absl::IsUnavailable(result.status())) result = call();
  return result;
}

// A worker on its own thread, whose connections break.
class Trainee {
 public:
  Trainee(const Cluster& cluster, uint32_t rank, uint64_t seed)
      : cluster_(cluster),
        rank_(rank),
        random_(seed * 1000 + rank),
        proxies_(cluster.size()),
        kernels_(kKernels, std::vector<float>(kElements)),
        sent_(kKernels) {
    CutSomewhere();
  }

  // Returns a channel to each server, through the proxies.
  TrainingConnection::Channels Channels() const {
    TrainingConnection::Channels channels;
    for (const auto& proxy : proxies_) {
      channels.push_back(cluster_.ChannelTo(proxy.port()));
    }
    return channels;
  }

  void Join() {
    TrainingConnection::Options open;
    open.servers = Channels();
    open.wait_for_values = false;
    auto connection =
        UntilItLasts([&] { return TrainingConnection::Open(open); });
    ASSERT_TRUE(connection.ok()) << connection.status();
    Worker::Options options;
    options.connection = *connection;
    options.rank = rank_;
    options.coder = [this](const std::string& table, const PlacedPart&) {
      return MakeCoder(table);
    };
    auto worker = UntilItLasts([&] { return Worker::Join(options); });
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }

  void Initialize(const tensor::Bundle& values) {
    const absl::Status given = worker_->Initialize(values);
    ASSERT_TRUE(given.ok()) << given;
  }

  void Train() {
    for (uint64_t step = 0; step < kSteps; ++step) Step(step, /*last=*/false);
    uint64_t flushed = 0;
    for (uint64_t step = kSteps; flushed < kFlushes; ++step) {
      if (testing::Test::HasFailure()) break;
      flushed = Step(step, /*last=*/true) ? flushed + 1 : 0;
    }
    worker_->Leave();
  }

  // Returns the ids of the rows in the push of `step`. Each push has rows of
  // its own, one for each server.
  static std::vector<uint64_t> IdsOf(const TrainingConnection& connection,
                                     uint32_t rank, uint64_t step) {
    const PlacedTable& rows = *connection.placement().Find("rows");
    std::vector<uint64_t> ids;
    uint64_t id = (step * 2 + rank) * 1000;
    for (uint32_t server = 0; server < connection.servers(); ++server) {
      while (rows.ServerOfId(id) != server) ++id;
      ids.push_back(id);
    }
    return ids;
  }

  // Returns, by step and server, true for each push that was counted.
  const std::vector<std::vector<bool>>& counted() const { return counted_; }
  // Returns the summed gradients of all steps, regardless of the verdicts.
  const std::vector<float>& kernel(int64_t i) const { return kernels_[i]; }
  const NotingCoder::Sent& sent(int64_t i) const { return sent_[i]; }
  size_t connections() {
    size_t all = 0;
    for (auto& proxy : proxies_) all += proxy.connections();
    return all;
  }

 private:
  std::unique_ptr<GradientCoder> MakeCoder(const std::string& table) {
    compression::CompressionSpec spec;
    spec.kind = compression::CompressionSpec::Kind::kTopK;
    spec.dtype = tensor::DType::kF32;
    spec.ratio = kRatio;
    for (int64_t i = 0; i < kKernels; ++i) {
      if (table != Kernel(i)) continue;
      return std::make_unique<NotingCoder>(MakeCompressionCoder(table, spec),
                                           &sent_[i]);
    }
    return nullptr;
  }

  void CutSomewhere() {
    for (size_t i = 0; i < proxies_.size(); ++i) {
      proxies_[i].Set(cluster_.port(i), kShortest + random_() % kMore);
    }
  }

  StepGradients Gradients(uint64_t step, bool is_last) {
    StepGradients gradients;
    gradients.dense.tensors.push_back({"dense", Filled({kDense}, kDense, 1)});
    for (int64_t i = 0; i < kKernels; ++i) {
      std::vector<float> values(kElements);
      for (float& value : values) {
        value = is_last ? 0 : static_cast<float>(random_() % 5) - 2;
      }
      for (int64_t at = 0; at < kElements; ++at) kernels_[i][at] += values[at];
      gradients.dense.tensors.push_back(
          {Kernel(i), *tensor::Tensor::Of<float>({kElements}, values)});
    }
    const auto ids = IdsOf(worker_->connection(), rank_, step);
    const auto count = static_cast<int64_t>(ids.size());
    gradients.rows = {{"rows", ids, Filled({count, 1}, ids.size(), 2)}};
    return gradients;
  }

  // Returns true if the push has counted at all servers.
  bool Step(uint64_t step, bool is_last) {
    CutSomewhere();
    PullSpec spec;
    spec.rows = {{"rows", IdsOf(worker_->connection(), rank_, step)}};
    const auto pulled = worker_->Pull(step, spec);
    EXPECT_TRUE(pulled.ok()) << pulled.status();
    const auto pushed = worker_->Push(step, Gradients(step, is_last));
    EXPECT_TRUE(pushed.ok()) << pushed.status();
    counted_.emplace_back(proxies_.size());
    if (!pushed.ok()) return false;
    for (size_t server = 0; server < proxies_.size(); ++server) {
      counted_.back()[server] =
          pushed->verdicts[server] == PushVerdict::kCounted;
    }
    return pushed->counted();
  }

  const Cluster& cluster_;
  const uint32_t rank_;
  std::mt19937_64 random_;
  std::vector<rpc::CuttingProxy> proxies_;
  std::vector<std::vector<float>> kernels_;
  std::vector<NotingCoder::Sent> sent_;
  std::vector<std::vector<bool>> counted_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CLIENT_TRAINEE_H_
