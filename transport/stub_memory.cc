#include "transport/stub_memory.h"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <utility>

#include "grpcpp/impl/codegen/core_codegen_interface.h"
#include "grpcpp/impl/grpc_library.h"
#include "transport/pool.h"

namespace penstock {
namespace {

using Share = std::shared_ptr<uint8_t>;

void GiveBack(void* share) { delete static_cast<Share*>(share); }

// The process for which the pool serves slices; its children do not count. 0:
// none yet.
std::atomic<pid_t> served{0};

// Forwards each call to gRPC's own CoreCodegenInterface, the interface through
// which gRPC's C++ calls its core. Allocates slices from the pool if possible.
// Methods are in the order of the interface.
class PooledCodegen final : public grpc::CoreCodegenInterface {
 public:
  explicit PooledCodegen(grpc::CoreCodegenInterface* inner) : inner_(inner) {}

  grpc_slice grpc_slice_malloc(size_t length) override {
    const absl::optional<grpc_slice> pooled = NewPooledSlice(length);
    return pooled.has_value() ? *pooled : inner_->grpc_slice_malloc(length);
  }

  void assert_fail(const char* failed_assertion, const char* file,
                   int line) override {
    return inner_->assert_fail(failed_assertion, file, line);
  }
  const grpc_completion_queue_factory* grpc_completion_queue_factory_lookup(
      const grpc_completion_queue_attributes* attributes) override {
    return inner_->grpc_completion_queue_factory_lookup(attributes);
  }
  grpc_completion_queue* grpc_completion_queue_create(
      const grpc_completion_queue_factory* factory,
      const grpc_completion_queue_attributes* attributes,
      void* reserved) override {
    return inner_->grpc_completion_queue_create(factory, attributes, reserved);
  }
  grpc_completion_queue* grpc_completion_queue_create_for_next(
      void* reserved) override {
    return inner_->grpc_completion_queue_create_for_next(reserved);
  }
  grpc_completion_queue* grpc_completion_queue_create_for_pluck(
      void* reserved) override {
    return inner_->grpc_completion_queue_create_for_pluck(reserved);
  }
  void grpc_completion_queue_shutdown(grpc_completion_queue* cq) override {
    return inner_->grpc_completion_queue_shutdown(cq);
  }
  void grpc_completion_queue_destroy(grpc_completion_queue* cq) override {
    return inner_->grpc_completion_queue_destroy(cq);
  }
  grpc_event grpc_completion_queue_pluck(grpc_completion_queue* cq, void* tag,
                                         gpr_timespec deadline,
                                         void* reserved) override {
    return inner_->grpc_completion_queue_pluck(cq, tag, deadline, reserved);
  }
  void* gpr_malloc(size_t size) override { return inner_->gpr_malloc(size); }
  void gpr_free(void* p) override { return inner_->gpr_free(p); }
  void grpc_init() override { return inner_->grpc_init(); }
  void grpc_shutdown() override { return inner_->grpc_shutdown(); }
  void gpr_mu_init(gpr_mu* mu) override { return inner_->gpr_mu_init(mu); }
  void gpr_mu_destroy(gpr_mu* mu) override {
    return inner_->gpr_mu_destroy(mu);
  }
  void gpr_mu_lock(gpr_mu* mu) override { return inner_->gpr_mu_lock(mu); }
  void gpr_mu_unlock(gpr_mu* mu) override { return inner_->gpr_mu_unlock(mu); }
  void gpr_cv_init(gpr_cv* cv) override { return inner_->gpr_cv_init(cv); }
  void gpr_cv_destroy(gpr_cv* cv) override {
    return inner_->gpr_cv_destroy(cv);
  }
  int gpr_cv_wait(gpr_cv* cv, gpr_mu* mu, gpr_timespec abs_deadline) override {
    return inner_->gpr_cv_wait(cv, mu, abs_deadline);
  }
  void gpr_cv_signal(gpr_cv* cv) override { return inner_->gpr_cv_signal(cv); }
  void gpr_cv_broadcast(gpr_cv* cv) override {
    return inner_->gpr_cv_broadcast(cv);
  }
  grpc_byte_buffer* grpc_byte_buffer_copy(grpc_byte_buffer* bb) override {
    return inner_->grpc_byte_buffer_copy(bb);
  }
  void grpc_byte_buffer_destroy(grpc_byte_buffer* bb) override {
    return inner_->grpc_byte_buffer_destroy(bb);
  }
  size_t grpc_byte_buffer_length(grpc_byte_buffer* bb) override {
    return inner_->grpc_byte_buffer_length(bb);
  }
  int grpc_byte_buffer_reader_init(grpc_byte_buffer_reader* reader,
                                   grpc_byte_buffer* buffer) override {
    return inner_->grpc_byte_buffer_reader_init(reader, buffer);
  }
  void grpc_byte_buffer_reader_destroy(
      grpc_byte_buffer_reader* reader) override {
    return inner_->grpc_byte_buffer_reader_destroy(reader);
  }
  int grpc_byte_buffer_reader_next(grpc_byte_buffer_reader* reader,
                                   grpc_slice* slice) override {
    return inner_->grpc_byte_buffer_reader_next(reader, slice);
  }
  int grpc_byte_buffer_reader_peek(grpc_byte_buffer_reader* reader,
                                   grpc_slice** slice) override {
    return inner_->grpc_byte_buffer_reader_peek(reader, slice);
  }
  grpc_byte_buffer* grpc_raw_byte_buffer_create(grpc_slice* slice,
                                                size_t nslices) override {
    return inner_->grpc_raw_byte_buffer_create(slice, nslices);
  }
  grpc_slice grpc_slice_new_with_user_data(void* p, size_t len,
                                           void (*destroy)(void*),
                                           void* user_data) override {
    return inner_->grpc_slice_new_with_user_data(p, len, destroy, user_data);
  }
  grpc_slice grpc_slice_new_with_len(void* p, size_t len,
                                     void (*destroy)(void*, size_t)) override {
    return inner_->grpc_slice_new_with_len(p, len, destroy);
  }
  grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops,
                                        size_t nops, void* tag,
                                        void* reserved) override {
    return inner_->grpc_call_start_batch(call, ops, nops, tag, reserved);
  }
  grpc_call_error grpc_call_cancel_with_status(grpc_call* call,
                                               grpc_status_code status,
                                               const char* description,
                                               void* reserved) override {
    return inner_->grpc_call_cancel_with_status(call, status, description,
                                                reserved);
  }
  int grpc_call_failed_before_recv_message(const grpc_call* c) override {
    return inner_->grpc_call_failed_before_recv_message(c);
  }
  void grpc_call_ref(grpc_call* call) override {
    return inner_->grpc_call_ref(call);
  }
  void grpc_call_unref(grpc_call* call) override {
    return inner_->grpc_call_unref(call);
  }
  void* grpc_call_arena_alloc(grpc_call* call, size_t length) override {
    return inner_->grpc_call_arena_alloc(call, length);
  }
  const char* grpc_call_error_to_string(grpc_call_error error) override {
    return inner_->grpc_call_error_to_string(error);
  }
  grpc_slice grpc_empty_slice() override { return inner_->grpc_empty_slice(); }
  void grpc_slice_unref(grpc_slice slice) override {
    return inner_->grpc_slice_unref(slice);
  }
  grpc_slice grpc_slice_ref(grpc_slice slice) override {
    return inner_->grpc_slice_ref(slice);
  }
  grpc_slice grpc_slice_split_tail(grpc_slice* s, size_t split) override {
    return inner_->grpc_slice_split_tail(s, split);
  }
  grpc_slice grpc_slice_split_head(grpc_slice* s, size_t split) override {
    return inner_->grpc_slice_split_head(s, split);
  }
  grpc_slice grpc_slice_sub(grpc_slice s, size_t begin, size_t end) override {
    return inner_->grpc_slice_sub(s, begin, end);
  }
  void grpc_slice_buffer_add(grpc_slice_buffer* sb, grpc_slice slice) override {
    return inner_->grpc_slice_buffer_add(sb, slice);
  }
  void grpc_slice_buffer_add_indexed(grpc_slice_buffer* sb,
                                     grpc_slice slice) override {
    return inner_->grpc_slice_buffer_add_indexed(sb, slice);
  }
  void grpc_slice_buffer_pop(grpc_slice_buffer* sb) override {
    return inner_->grpc_slice_buffer_pop(sb);
  }
  grpc_slice grpc_slice_from_static_buffer(const void* buffer,
                                           size_t length) override {
    return inner_->grpc_slice_from_static_buffer(buffer, length);
  }
  grpc_slice grpc_slice_from_copied_buffer(const void* buffer,
                                           size_t length) override {
    return inner_->grpc_slice_from_copied_buffer(buffer, length);
  }
  void grpc_metadata_array_init(grpc_metadata_array* array) override {
    return inner_->grpc_metadata_array_init(array);
  }
  void grpc_metadata_array_destroy(grpc_metadata_array* array) override {
    return inner_->grpc_metadata_array_destroy(array);
  }
  const grpc::Status& ok() override { return inner_->ok(); }
  const grpc::Status& cancelled() override { return inner_->cancelled(); }
  gpr_timespec gpr_inf_future(gpr_clock_type type) override {
    return inner_->gpr_inf_future(type);
  }
  gpr_timespec gpr_time_0(gpr_clock_type type) override {
    return inner_->gpr_time_0(type);
  }

 private:
  grpc::CoreCodegenInterface* const inner_;
};

}  // namespace

void ServeStubsFromPool() {
  static PooledCodegen* const pooled = [] {
    // Calls summon(), which sets the pointer unless a static object of the
    // program already did.
    grpc::internal::GrpcLibraryInitializer().summon();
    auto* replacement = new PooledCodegen(grpc::g_core_codegen_interface);
    __atomic_store_n(&grpc::g_core_codegen_interface,
                     static_cast<grpc::CoreCodegenInterface*>(replacement),
                     __ATOMIC_RELEASE);
    served = getpid();
    return replacement;
  }();
  (void)pooled;
}

absl::optional<grpc_slice> NewPooledSlice(size_t length) {
  if (length < kPooledSliceBytes || getpid() != served) return absl::nullopt;
  Share share = AllocateFromPool(length);
  if (share == nullptr) return absl::nullopt;
  void* const data = share.get();
  return grpc_slice_new_with_user_data(data, length, GiveBack,
                                       new Share(std::move(share)));
}

}  // namespace penstock
