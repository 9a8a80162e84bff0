#include "transport/session/recorder.h"

#include <atomic>

#include "transport/base/probes.h"

namespace penstock {
namespace session {
namespace {

uint64_t NextConnection() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Recorder::Recorder(const Config& config)
    : config_(config), connection_(NextConnection()) {}

void Recorder::OnStreamBegun(uint32_t stream) const {
  PENSTOCK_PROBE(stream_begun, connection_, stream);
}

void Recorder::OnStreamEnded(uint32_t stream, uint64_t begun_ns,
                             bool has_status, metrics::Fabric fabric) const {
  PENSTOCK_PROBE(stream_ended, connection_, stream);
  if (begun_ns == 0 || metrics::Trace::Current() == nullptr) return;
  metrics::TraceEvent event;
  event.stream = stream;
  event.ok = has_status;
  event.fabric = fabric;
  event.begun_ns = begun_ns;
  Add(event);
}

void Recorder::OnAnnounced(uint32_t stream, uint64_t bytes) const {
  PENSTOCK_PROBE(message_announced, stream, bytes);
}

void Recorder::OnReleased(uint32_t stream, uint64_t id, uint64_t bytes,
                          uint64_t announced_ns, metrics::Fabric fabric) const {
  if (announced_ns == 0 || metrics::Trace::Current() == nullptr) return;
  metrics::TraceEvent event;
  event.kind = metrics::TraceEvent::Kind::kAnnounced;
  event.stream = stream;
  event.id = id;
  event.bytes = bytes;
  event.fabric = fabric;
  event.begun_ns = announced_ns;
  Add(event);
}

void Recorder::OnRead(uint32_t stream, uint64_t id, uint64_t bytes,
                      uint64_t begun_ns, metrics::Fabric fabric) const {
  PENSTOCK_PROBE(message_read, stream, bytes);
  if (begun_ns == 0 || metrics::Trace::Current() == nullptr) return;
  metrics::TraceEvent event;
  event.kind = metrics::TraceEvent::Kind::kRead;
  event.stream = stream;
  event.id = id;
  event.bytes = bytes;
  event.fabric = fabric;
  event.begun_ns = begun_ns;
  Add(event);
}

void Recorder::Add(metrics::TraceEvent event) const {
  event.role =
      config_.is_client ? metrics::Role::kClient : metrics::Role::kServer;
  event.connection = connection_;
  event.ended_ns = Now();
  metrics::Trace* const trace = metrics::Trace::Current();
  if (trace != nullptr) trace->Add(event);
}

}  // namespace session
}  // namespace penstock
