/// The C library of the system, for the package's own targets. They import `Platform` and name no C library, so that only
/// this target distinguishes Glibc, Musl and Darwin. The other targets import this target internally, so users of the
/// package do not see its names.
#if canImport(Glibc)
    @_exported import Glibc
#elseif canImport(Musl)
    @_exported import Musl
#elseif canImport(Darwin)
    @_exported import Darwin
#endif
