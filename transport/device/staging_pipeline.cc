#include "transport/device/staging_pipeline.h"

#include <cassert>
#include <utility>

namespace penstock {
namespace device {

StagingPipeline::StagingPipeline(const Shape& shape)
    : shape_(shape), begun_(shape.stages), ended_(shape.stages) {
  assert(shape.slots > 0 && shape.stages > 0);
}

StagingPipeline::Steps StagingPipeline::Start() {
  Steps steps;
  BeginAll(&steps);
  return steps;
}

StagingPipeline::Steps StagingPipeline::OnDone(int stage) {
  assert(is_busy(stage));
  ++ended_[stage];
  Steps steps;
  if (error_.ok()) BeginAll(&steps);
  return steps;
}

void StagingPipeline::Fail(absl::Status error) {
  if (error_.ok()) error_ = std::move(error);
}

bool StagingPipeline::finished() const {
  if (error_.ok()) return ended_.back() == shape_.chunks;
  return begun_ == ended_;
}

bool StagingPipeline::MayBegin(size_t stage) const {
  if (stage > 0) return begun_[stage] < ended_[stage - 1];
  return begun_[0] < shape_.chunks &&
         begun_[0] - ended_.back() < static_cast<size_t>(shape_.slots);
}

// Begins all steps that may begin. Handles later stages first, because they
// free slots.
void StagingPipeline::BeginAll(Steps* steps) {
  for (size_t stage = begun_.size(); stage-- > 0;) {
    while (MayBegin(stage)) {
      const size_t chunk = begun_[stage]++;
      steps->push_back({static_cast<int>(stage), chunk,
                        static_cast<int>(chunk % shape_.slots)});
    }
  }
}

}  // namespace device
}  // namespace penstock
