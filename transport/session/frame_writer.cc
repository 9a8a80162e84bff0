#include "transport/session/frame_writer.h"

#include <utility>

namespace penstock {
namespace session {

void FrameWriter::Add(wire::FrameType type, uint32_t stream, uint32_t aux,
                      absl::string_view payload, uint8_t flags) {
  if (stopped_) return;
  if (has_deferred()) SendDeferred();
  if (type <= wire::FrameType::kTrailers && stream != 0) {
    ++counters_->stream_frames_sent;
  }
  wire::FrameHeader header;
  header.type = type;
  header.stream = stream;
  header.aux = aux;
  header.flags = flags;
  sender_->Add(header, payload, received_->delivered());
}

void FrameWriter::Defer(wire::FrameType type, uint32_t stream, uint32_t aux,
                        absl::string_view payload) {
  if (stopped_) return;
  Deferred deferred;
  deferred.header.type = type;
  deferred.header.stream = stream;
  deferred.header.aux = aux;
  deferred.payload = std::string(payload);
  deferred_.push_back(std::move(deferred));
  if (deferred_.size() >= kMaxDeferred) SendDeferred();
}

void FrameWriter::SendDeferred() {
  for (const Deferred& deferred : deferred_) {
    sender_->Add(deferred.header, deferred.payload, received_->delivered());
  }
  deferred_.clear();
}

void FrameWriter::AddControl(wire::FrameType type, uint32_t aux,
                             absl::string_view payload) {
  if (stopped_) return;
  wire::FrameHeader header;
  header.type = type;
  header.aux = aux;
  sender_->AddControl(header, payload, received_->delivered());
}

}  // namespace session
}  // namespace penstock
