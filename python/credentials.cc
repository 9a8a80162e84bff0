#include "python/credentials.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "python/bindings.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// None is the empty string, which is gRPC's word for it.
std::string Pem(const py::object& pem) {
  return pem.is_none() ? std::string() : std::string(pem.cast<py::bytes>());
}

ChannelCredentials SslChannel(const py::object& roots, const py::object& key,
                              const py::object& chain) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = Pem(roots);
  options.pem_private_key = Pem(key);
  options.pem_cert_chain = Pem(chain);
  return {grpc::SslCredentials(options)};
}

ServerCredentials SslServer(const py::bytes& key, const py::bytes& chain,
                            const py::object& roots) {
  grpc::SslServerCredentialsOptions options(
      roots.is_none()
          ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = Pem(roots);
  options.pem_key_cert_pairs.push_back({key, chain});
  return {grpc::SslServerCredentials(options)};
}

}  // namespace

void BindCredentials(py::module_& module) {
  const py::class_<ChannelCredentials> channel(
      module, "ChannelCredentials", "What secures a client's connections.");
  const py::class_<ServerCredentials> server(module, "ServerCredentials",
                                             "What secures a server's port.");
  module.def("ssl_channel_credentials", &SslChannel,
             py::arg("root_certificates") = py::none(),
             py::arg("private_key") = py::none(),
             py::arg("certificate_chain") = py::none(),
             "Makes a client use TLS. All are PEM texts, as bytes. Without "
             "roots, gRPC's own are trusted. Key and chain are the client's, "
             "for a server that asks for them.");
  module.def("ssl_server_credentials", &SslServer, py::arg("private_key"),
             py::arg("certificate_chain"),
             py::arg("client_root_certificates") = py::none(),
             "Makes a server use TLS. All are PEM texts, as bytes. With "
             "client_root_certificates, clients need a certificate that these "
             "have signed.");
}

}  // namespace penstock::python
