#include "transport/fabric/verbs/library.h"

#include <dlfcn.h>

#include <cerrno>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

// Removes macros of verbs.h that hide functions.
#undef ibv_query_port
#undef ibv_reg_mr

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// The library's functions. Inline functions of verbs.h (posting, polling) go
// through the device's own tables and are not listed.
#define PENSTOCK_IBVERBS(CALL)   \
  CALL(ibv_fork_init)            \
  CALL(ibv_get_device_name)      \
  CALL(ibv_query_device)         \
  CALL(ibv_get_async_event)      \
  CALL(ibv_ack_async_event)      \
  CALL(ibv_alloc_pd)             \
  CALL(ibv_dealloc_pd)           \
  CALL(ibv_reg_mr)               \
  CALL(ibv_dereg_mr)             \
  CALL(ibv_create_comp_channel)  \
  CALL(ibv_destroy_comp_channel) \
  CALL(ibv_create_cq)            \
  CALL(ibv_destroy_cq)           \
  CALL(ibv_get_cq_event)         \
  CALL(ibv_ack_cq_events)        \
  CALL(ibv_create_srq)           \
  CALL(ibv_destroy_srq)          \
  CALL(ibv_create_qp)            \
  CALL(ibv_destroy_qp)           \
  CALL(ibv_modify_qp)            \
  CALL(ibv_query_qp)             \
  CALL(_ibv_query_gid_table)

#define PENSTOCK_RDMACM(CALL)      \
  CALL(rdma_create_event_channel)  \
  CALL(rdma_destroy_event_channel) \
  CALL(rdma_get_cm_event)          \
  CALL(rdma_ack_cm_event)          \
  CALL(rdma_create_id)             \
  CALL(rdma_destroy_id)            \
  CALL(rdma_bind_addr)             \
  CALL(rdma_set_option)            \
  CALL(rdma_listen)                \
  CALL(rdma_get_src_port)          \
  CALL(rdma_resolve_addr)          \
  CALL(rdma_resolve_route)         \
  CALL(rdma_create_qp)             \
  CALL(rdma_destroy_qp)            \
  CALL(rdma_connect)               \
  CALL(rdma_accept)                \
  CALL(rdma_reject)                \
  CALL(rdma_disconnect)

// NOLINTNEXTLINE(bugprone-macro-parentheses): it declares
#define PENSTOCK_DECLARE(name) decltype(&::name) name = nullptr;
struct Symbols {
  PENSTOCK_IBVERBS(PENSTOCK_DECLARE)
  PENSTOCK_RDMACM(PENSTOCK_DECLARE)
  // Reads a port's attributes. The exported function fills only the fields that
  // all versions of the structure have.
  int (*ibv_query_port)(ibv_context*, uint8_t, ibv_port_attr*) = nullptr;
  // Registers a dmabuf. Null in older libraries, which work without this
  // function.
  ibv_mr* (*ibv_reg_dmabuf_mr)(ibv_pd*, uint64_t, size_t, uint64_t, int,
                               int) = nullptr;
};
#undef PENSTOCK_DECLARE

class LibraryApi : public Api {
 public:
  explicit LibraryApi(const Symbols& symbols) : call_(symbols) {}

  int ForkInit() override { return call_.ibv_fork_init(); }
  const char* GetDeviceName(ibv_device* device) override {
    return call_.ibv_get_device_name(device);
  }
  int QueryDevice(ibv_context* context, ibv_device_attr* attr) override {
    return call_.ibv_query_device(context, attr);
  }
  int QueryPort(ibv_context* context, uint8_t port,
                ibv_port_attr* attr) override {
    *attr = ibv_port_attr();
    return call_.ibv_query_port(context, port, attr);
  }
  ssize_t QueryGidTable(ibv_context* context, ibv_gid_entry* entries,
                        size_t max_entries) override {
    return call_._ibv_query_gid_table(context, entries, max_entries, 0,
                                      sizeof *entries);
  }
  int GetAsyncEvent(ibv_context* context, ibv_async_event* event) override {
    return call_.ibv_get_async_event(context, event);
  }
  void AckAsyncEvent(ibv_async_event* event) override {
    call_.ibv_ack_async_event(event);
  }
  ibv_pd* AllocPd(ibv_context* context) override {
    return call_.ibv_alloc_pd(context);
  }
  int DeallocPd(ibv_pd* pd) override { return call_.ibv_dealloc_pd(pd); }
  ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length, int access) override {
    return call_.ibv_reg_mr(pd, address, length, access);
  }
  int DeregMr(ibv_mr* mr) override { return call_.ibv_dereg_mr(mr); }
  bool HasRegDmabufMr() override { return call_.ibv_reg_dmabuf_mr != nullptr; }
  ibv_mr* RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova,
                      int fd, int access) override {
    if (!HasRegDmabufMr()) {
      errno = EOPNOTSUPP;
      return nullptr;
    }
    ibv_mr* const mr =
        call_.ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
    // Sets the address, because the library has stored the offset in this
    // field.
    if (mr != nullptr) mr->addr = reinterpret_cast<void*>(iova);
    return mr;
  }
  ibv_mw* AllocMw(ibv_pd* pd, ibv_mw_type type) override {
    return ibv_alloc_mw(pd, type);
  }
  int DeallocMw(ibv_mw* mw) override { return ibv_dealloc_mw(mw); }
  ibv_comp_channel* CreateCompChannel(ibv_context* context) override {
    return call_.ibv_create_comp_channel(context);
  }
  int DestroyCompChannel(ibv_comp_channel* channel) override {
    return call_.ibv_destroy_comp_channel(channel);
  }
  ibv_cq* CreateCq(ibv_context* context, int entries, void* cq_context,
                   ibv_comp_channel* channel, int vector) override {
    return call_.ibv_create_cq(context, entries, cq_context, channel, vector);
  }
  int DestroyCq(ibv_cq* cq) override { return call_.ibv_destroy_cq(cq); }
  int ReqNotifyCq(ibv_cq* cq, int solicited_only) override {
    return ibv_req_notify_cq(cq, solicited_only);
  }
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                 void** cq_context) override {
    return call_.ibv_get_cq_event(channel, cq, cq_context);
  }
  void AckCqEvents(ibv_cq* cq, unsigned int count) override {
    call_.ibv_ack_cq_events(cq, count);
  }
  int PollCq(ibv_cq* cq, int entries, ibv_wc* completions) override {
    return ibv_poll_cq(cq, entries, completions);
  }
  ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* attr) override {
    return call_.ibv_create_srq(pd, attr);
  }
  int DestroySrq(ibv_srq* srq) override { return call_.ibv_destroy_srq(srq); }
  int PostSrqRecv(ibv_srq* srq, ibv_recv_wr* request,
                  ibv_recv_wr** bad) override {
    return ibv_post_srq_recv(srq, request, bad);
  }
  int PostSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) override {
    return ibv_post_send(qp, request, bad);
  }
  ibv_qp* IbvCreateQp(ibv_pd* pd, ibv_qp_init_attr* attr) override {
    return call_.ibv_create_qp(pd, attr);
  }
  int IbvDestroyQp(ibv_qp* qp) override { return call_.ibv_destroy_qp(qp); }
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override {
    return call_.ibv_modify_qp(qp, attr, mask);
  }
  int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
              ibv_qp_init_attr* init) override {
    return call_.ibv_query_qp(qp, attr, mask, init);
  }

  rdma_event_channel* CreateEventChannel() override {
    return call_.rdma_create_event_channel();
  }
  void DestroyEventChannel(rdma_event_channel* channel) override {
    call_.rdma_destroy_event_channel(channel);
  }
  int GetCmEvent(rdma_event_channel* channel, rdma_cm_event** event) override {
    return call_.rdma_get_cm_event(channel, event);
  }
  int AckCmEvent(rdma_cm_event* event) override {
    return call_.rdma_ack_cm_event(event);
  }
  int CreateId(rdma_event_channel* channel, rdma_cm_id** id, void* context,
               rdma_port_space space) override {
    return call_.rdma_create_id(channel, id, context, space);
  }
  int DestroyId(rdma_cm_id* id) override { return call_.rdma_destroy_id(id); }
  int BindAddr(rdma_cm_id* id, sockaddr* address) override {
    return call_.rdma_bind_addr(id, address);
  }
  int SetOption(rdma_cm_id* id, int level, int name, void* value,
                size_t length) override {
    return call_.rdma_set_option(id, level, name, value, length);
  }
  int Listen(rdma_cm_id* id, int backlog) override {
    return call_.rdma_listen(id, backlog);
  }
  uint16_t GetSrcPort(rdma_cm_id* id) override {
    return call_.rdma_get_src_port(id);
  }
  int ResolveAddr(rdma_cm_id* id, sockaddr* source, sockaddr* destination,
                  int timeout_ms) override {
    return call_.rdma_resolve_addr(id, source, destination, timeout_ms);
  }
  int ResolveRoute(rdma_cm_id* id, int timeout_ms) override {
    return call_.rdma_resolve_route(id, timeout_ms);
  }
  int CreateQp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) override {
    return call_.rdma_create_qp(id, pd, attr);
  }
  void DestroyQp(rdma_cm_id* id) override { call_.rdma_destroy_qp(id); }
  int Connect(rdma_cm_id* id, rdma_conn_param* param) override {
    return call_.rdma_connect(id, param);
  }
  int Accept(rdma_cm_id* id, rdma_conn_param* param) override {
    return call_.rdma_accept(id, param);
  }
  int Reject(rdma_cm_id* id, const void* data, uint8_t length) override {
    return call_.rdma_reject(id, data, length);
  }
  int Disconnect(rdma_cm_id* id) override { return call_.rdma_disconnect(id); }

 private:
  const Symbols call_;
};

// Looks up the functions, until one is missing.
class Loader {
 public:
  void Open(const char* library, const char* package) {
    if (!status_.ok()) return;
    package_ = package;
    handle_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) Fail();
  }
  template <typename Function>
  void Find(const char* name, Function* function) {
    if (!status_.ok()) return;
    void* symbol = dlsym(handle_, name);
    if (symbol == nullptr) return Fail();
    *function = reinterpret_cast<Function>(symbol);
  }
  // Looks up an optional symbol. A missing symbol stays null.
  template <typename Function>
  void FindIfThere(const char* name, Function* function) {
    if (!status_.ok()) return;
    *function = reinterpret_cast<Function>(dlsym(handle_, name));
  }
  const absl::Status& status() const { return status_; }

 private:
  void Fail() {
    const char* why = dlerror();
    status_ = absl::NotFoundError(
        absl::StrCat("no RDMA library here: ", why == nullptr ? "" : why,
                     " (package ", package_, ")"));
  }

  absl::Status status_;
  void* handle_ = nullptr;
  const char* package_ = nullptr;
};

absl::StatusOr<Api*> Load() {
  Symbols symbols;
  Loader loader;
#define PENSTOCK_FIND(name) loader.Find(#name, &symbols.name);
  loader.Open("libibverbs.so.1", "libibverbs1");
  PENSTOCK_IBVERBS(PENSTOCK_FIND)
  PENSTOCK_FIND(ibv_query_port)
  loader.FindIfThere("ibv_reg_dmabuf_mr", &symbols.ibv_reg_dmabuf_mr);
  loader.Open("librdmacm.so.1", "librdmacm1");
  PENSTOCK_RDMACM(PENSTOCK_FIND)
#undef PENSTOCK_FIND
  if (!loader.status().ok()) return loader.status();
  Api* const api = new LibraryApi(symbols);
  // Prepares for forks, so that registered memory stays with the parent.
  // Kernels since 5.12 do this by themselves. A failure would affect only a
  // forked child.
  (void)api->ForkInit();
  return api;
}

}  // namespace

absl::StatusOr<Api*> OpenLibrary() {
  static const auto* const opened = new absl::StatusOr<Api*>(Load());
  return *opened;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
