// Preloaded, it makes the gRPC that is loaded say that it is another one.

extern "C" const char* grpc_version_string() { return "30.1.2"; }
