// A library to preload, with which libgrpc looks like a build in C++17: it has
// a function whose parameter is a std::string_view.

void GrpcParseIpv6HostportOfCxx17(void) __asm__(
    "_Z24grpc_parse_ipv6_hostportSt17basic_string_viewIcSt11char_traitsIcEE"
    "P21grpc_resolved_addressb");

void GrpcParseIpv6HostportOfCxx17(void) {}
