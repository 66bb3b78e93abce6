/// The C library of the system, for the package's own targets: they import `Platform` and name no C library themselves, so
/// that Glibc, Musl and Darwin are told apart in this target only. Users of the package do not see its names, because the
/// other targets import this one internally.
#if canImport(Glibc)
    @_exported import Glibc
#elseif canImport(Musl)
    @_exported import Musl
#elseif canImport(Darwin)
    @_exported import Darwin
#endif
