// swift-tools-version: 6.2
import PackageDescription

// Measures Strata against code written by hand. It is a package of its own, so that packages that use Strata do not get its
// dependencies. Build it with STRATA_NO_MACROS=1: swift-syntax takes minutes to compile, and only `strata-bench peers` needs macros.

// `make peers` sets STRATA_PEERS. It compares models declared by macro with GRDB's records, and uses a separate build folder.
let withPeers = Context.environment["STRATA_PEERS"] != nil
let peerSettings: [SwiftSetting] = withPeers ? [.define("STRATA_PEERS")] : []

let package = Package(
    name: "strata-benchmarks",
    platforms: [.macOS(.v15)],
    products: [.executable(name: "strata-bench", targets: ["strata-bench"])],
    dependencies: [
        .package(name: "strata", path: ".."),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    ],
    targets: [
        // C libraries.
        .systemLibrary(name: "CLMDBBaseline", pkgConfig: "lmdb", providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])]),
        .systemLibrary(
            name: "CSQLiteBaseline", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
        .systemLibrary(name: "CLinuxHost"),

        // The two engines in plain C calls: floors under the object layer.
        .target(name: "Baselines", dependencies: ["CLMDBBaseline", "CSQLiteBaseline"]),

        // Clocks, the main thread's jobs, memory, reports.
        .target(name: "Figures", dependencies: ["CLinuxHost"]),

        // The measured work.
        .target(
            name: "Workloads",
            dependencies: [
                "Figures", "Baselines",
                .product(name: "Histogram", package: "hdrhistogram-swift"),
                .product(name: "CoreDataRouting", package: "strata"),
                .product(name: "Datasets", package: "strata"),
                .product(name: "ObjectGraph", package: "strata"),
                .product(name: "SQLiteStore", package: "strata"),
                .product(name: "StoreInterface", package: "strata"),
            ]),
        .executableTarget(
            name: "strata-bench",
            dependencies: [
                "Workloads", "Figures",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "CoreDataRouting", package: "strata"),
                .product(name: "Datasets", package: "strata"),
            ] + (withPeers ? ["Peers"] : []), swiftSettings: peerSettings),

        // Programs behind the decisions on pages in Docs/Internals/FileFormat.md: the number of objects per page, the cost of the codec,
        // and the size from which values are stored out of line.
        .executableTarget(name: "page-sizes", dependencies: ["CLMDBBaseline"]),
        .executableTarget(
            name: "codec-timing",
            dependencies: [.product(name: "PageCodec", package: "strata"), .product(name: "StoreInterface", package: "strata")]),
        .executableTarget(
            name: "value-sizes",
            dependencies: [.product(name: "ObjectGraph", package: "strata"), .product(name: "StoreInterface", package: "strata")]),

        .testTarget(name: "FiguresTests", dependencies: ["Figures"]),
        // Compiled with -O, because only the optimizer allocates models on the stack. SwiftPM refuses packages with unsafe flags as
        // dependencies, and no package depends on the benchmarks.
        .testTarget(
            name: "OptimizedModelTests", dependencies: [.product(name: "ObjectGraph", package: "strata")],
            swiftSettings: [.unsafeFlags(["-O"])]),
        .testTarget(
            name: "WorkloadsTests",
            dependencies: [
                "Workloads", "Figures", "Baselines", .product(name: "CoreDataRouting", package: "strata"),
                .product(name: "Datasets", package: "strata"),
            ]),
        .testTarget(
            name: "CommandTests",
            dependencies: [
                "strata-bench", "Figures", .product(name: "Datasets", package: "strata"),
                .product(name: "StoreInterface", package: "strata"),
            ], swiftSettings: peerSettings),
    ],
    swiftLanguageModes: [.v6]
)

if withPeers {
    // The exact version, which a report names.
    package.dependencies.append(.package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"))
    package.targets += [
        .target(
            name: "Peers",
            dependencies: [
                "Workloads", "Figures", .product(name: "Strata", package: "strata"),
                .product(name: "Datasets", package: "strata"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ]),
        .testTarget(name: "PeersTests", dependencies: ["Peers", "Workloads", "Figures"]),
    ]
}
