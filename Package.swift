// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

// Targets are in the order of the layers, lowest first; those with macros are at the end, because they can be left out. Each
// imports only targets of lower layers.

// Benchmarks, fuzzing and the address sanitizer set STRATA_NO_MACROS=1. Without macros, swift-syntax need not be compiled.
let withMacros = Context.environment["STRATA_NO_MACROS"] == nil

// The Makefile sets STRATA_THREAD_SANITIZER for the run under the thread sanitizer.
let lockSettings: [SwiftSetting] =
    Context.environment["STRATA_THREAD_SANITIZER"] == nil ? [] : [.define("STRATA_THREAD_SANITIZER")]

let package = Package(
    name: "strata",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "ObjectGraph", targets: ["ObjectGraph", "LMDBStore", "MemoryStore"]),
        .library(name: "SQLiteStore", targets: ["SQLiteStore"]),
        .library(name: "StoreInterface", targets: ["StoreInterface", "StoreModel", "StoreFiles"]),
        .library(name: "StoreContract", targets: ["StoreContract"]),
        .library(name: "PageCodec", targets: ["PageCodec"]),
        .library(name: "Datasets", targets: ["Datasets"]),
        // For the benchmarks only. A product, because they are a package of their own.
        .library(name: "CoreDataRouting", targets: ["CoreDataRouting"]),
        .executable(name: "strata", targets: ["strata-tool"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        // Used by the command line tool only. Packages that use the libraries do not build them.
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        // Layer 0: C libraries.
        .systemLibrary(
            name: "CLMDB", pkgConfig: "lmdb", providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])]),
        .systemLibrary(
            name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"]), .brew(["zstd"])]),
        .systemLibrary(
            name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),

        // What Swift's modules of the C library leave out.
        .systemLibrary(name: "CPlatform"),

        // Layer 0: the operating system. The only importer of Glibc, Musl and Darwin; and locks.
        .target(name: "Platform", dependencies: ["CPlatform"], swiftSettings: lockSettings),

        // Layer 1: the only importer of CLMDB.
        .target(name: "LMDB", dependencies: ["CLMDB", "Platform"]),

        // Layer 2: the types that the layers exchange: ids, values, schemas, queries, rows, change sets. No input or output.
        .target(name: "StoreModel", dependencies: ["Platform"]),
        // Layer 2: the files of stores: how they are created, named, replaced, locked and watched.
        .target(name: "StoreFiles", dependencies: ["StoreModel", "Platform"]),
        // Layer 2: the protocols of a store.
        .target(name: "StoreInterface", dependencies: ["StoreModel", "StoreFiles"]),

        // Layer 3: conversion of bytes to records and back; the only importer of CZstd.
        .target(name: "PageCodec", dependencies: ["StoreInterface", "StoreModel", "CZstd", "Platform"]),

        // Layer 3: the suite that every store passes, for authors of other stores.
        .target(name: "StoreContract", dependencies: ["StoreInterface", "StoreModel"]),

        // Layer 4: stores; SQLiteStore is the only importer of CSQLite.
        .target(
            name: "MemoryStore",
            dependencies: [
                "StoreInterface", "StoreModel", "Platform", .product(name: "HashTreeCollections", package: "swift-collections"),
            ]),
        .target(
            name: "LMDBStore", dependencies: ["PageCodec", "StoreFiles", "StoreInterface", "StoreModel", "LMDB", "Platform"]),
        .target(name: "SQLiteStore", dependencies: ["StoreFiles", "StoreInterface", "StoreModel", "CSQLite", "Platform"]),

        // Layer 5: objects and contexts.
        .target(
            name: "ObjectGraph",
            dependencies: [
                "StoreInterface", "StoreModel", "Platform", .product(name: "Logging", package: "swift-log"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ]),

        // Layer 6: data of other programs as tables, for imports and benchmarks: SQLite files, Core Data stores, CSV folders.
        .target(name: "Datasets", dependencies: ["ObjectGraph", "SQLiteStore", "StoreInterface", "StoreModel", "Platform"]),

        // Layer 6: an emulation of Core Data's request routing, which the benchmarks compare with. Nothing of the product uses it.
        .target(
            name: "CoreDataRouting", dependencies: ["ObjectGraph", "SQLiteStore", "StoreInterface", "StoreModel", "Platform"],
            path: "Benchmarks/CoreDataRouting"),

        // Layer 7: the page in a browser that `strata studio` serves. Like any program, it can use the public API only.
        .target(
            name: "StrataStudio",
            dependencies: [
                "ObjectGraph", "StoreInterface", "StoreModel", .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
            ], packageAccess: false),
        // Layer 8: the verbs of the command line tool. Like any program, they can use the public API only.
        .target(
            name: "StrataTool",
            dependencies: [
                "Datasets", "ObjectGraph", "LMDBStore", "SQLiteStore", "StoreFiles", "StoreInterface", "StoreModel",
                "StrataStudio",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ], packageAccess: false),
        // The program `strata`. Its module is named otherwise than the product: `strata` and `Strata` would be one file name on macOS.
        .executableTarget(
            name: "strata-tool", dependencies: ["StrataTool", .product(name: "Logging", package: "swift-log")],
            packageAccess: false),

        // Tests: one target per module, then the suites that cross modules.
        .target(
            name: "TestSupport",
            dependencies: [
                "CoreDataRouting", "ObjectGraph", "LMDBStore", "MemoryStore", "SQLiteStore", "StoreContract", "StoreInterface",
                "StoreModel", "Platform", .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/TestSupport"),
        // The example of a store by another author. It also has a separate manifest. Here it is compiled for the contract's tests.
        .target(
            name: "DictionaryStore", dependencies: ["StoreInterface", "StoreModel"],
            path: "Examples/DictionaryStore/Sources/DictionaryStore"),
        .testTarget(
            name: "DictionaryStoreTests", dependencies: ["DictionaryStore", "StoreContract", "ObjectGraph"],
            path: "Examples/DictionaryStore/Tests/DictionaryStoreTests"),
        // The example of keyed collections. It also has a separate manifest. Here it is compiled and run by the stack tests.
        .executableTarget(
            name: "Notes", dependencies: ["ObjectGraph", "LMDBStore"], path: "Examples/Notes/Sources/Notes"),
        // The example of a form, which also has a separate manifest.
        .target(name: "EditSheet", dependencies: ["ObjectGraph"], path: "Examples/EditSheet/Sources/EditSheet"),
        .testTarget(
            name: "EditSheetTests", dependencies: ["EditSheet", "ObjectGraph", "MemoryStore"],
            path: "Examples/EditSheet/Tests/EditSheetTests"),
        // The example of a large import, which also has a separate manifest. Like any program, examples can use the public API only.
        .executableTarget(
            name: "import-geonames", dependencies: ["ObjectGraph", "LMDBStore", "StoreInterface", "StoreModel"],
            path: "Examples/ImportGeonames/Sources/import-geonames", packageAccess: false),
        .testTarget(
            name: "ImportGeonamesTests", dependencies: ["import-geonames"],
            path: "Examples/ImportGeonames/Tests/ImportGeonamesTests"),
        .testTarget(
            name: "PlatformTests",
            dependencies: ["Platform", "StoreContract", "StoreFiles", "StoreInterface", "StoreModel", "TestSupport"]),
        .testTarget(name: "LMDBTests", dependencies: ["LMDB", "StoreContract"]),
        .testTarget(
            name: "StoreModelTests",
            dependencies: ["StoreContract", "StoreFiles", "StoreInterface", "StoreModel", "TestSupport"]),
        .testTarget(name: "PageCodecTests", dependencies: ["PageCodec", "StoreInterface", "StoreModel", "TestSupport"]),
        .testTarget(
            name: "LMDBStoreTests",
            dependencies: ["LMDBStore", "LMDB", "PageCodec", "StoreContract", "StoreInterface", "StoreModel", "TestSupport"],
            exclude: ["Fixtures"]),
        .testTarget(
            name: "StoreContractTests",
            dependencies: [
                "StoreContract", "MemoryStore", "LMDBStore", "SQLiteStore", "StoreInterface", "StoreModel", "Platform",
            ]),
        .testTarget(
            name: "ObjectGraphTests",
            dependencies: [
                "ObjectGraph", "TestSupport", "Platform", .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ]),
        .testTarget(
            name: "CoreDataRoutingTests", dependencies: ["CoreDataRouting", "ObjectGraph", "TestSupport", "Platform"]),
        .testTarget(
            name: "CoordinationTests",
            dependencies: [
                "ObjectGraph", "LMDB", "LMDBStore", "MemoryStore", "TestSupport", "Platform",
                .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "StackTests",
            dependencies: [
                "Notes", "CoreDataRouting", "ObjectGraph", "TestSupport", "Platform",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
            ]),
        .testTarget(
            name: "CrashTests",
            dependencies: ["LMDB", "LMDBStore", "SQLiteStore", "ObjectGraph", "TestSupport", "Platform"]),
        .testTarget(
            name: "DatasetsTests",
            dependencies: ["Datasets", "ObjectGraph", "SQLiteStore", "StoreInterface", "StoreModel", "TestSupport"]),
        .testTarget(
            name: "StrataToolTests",
            dependencies: [
                "strata-tool", "StrataTool", "Datasets", "ObjectGraph", "LMDBStore", "SQLiteStore", "StoreInterface",
                "StoreModel",
                "TestSupport",
            ]),
        .testTarget(
            name: "StrataStudioTests",
            dependencies: [
                "StrataStudio", "StrataTool", "ObjectGraph", "LMDBStore", "SQLiteStore", "StoreInterface", "StoreModel",
                "TestSupport",
            ]),
        .testTarget(name: "ArchitectureTests", exclude: ["Fixtures"]),

        // Simulated power cuts and kills: processes that crash, run by the Makefile.
        .executableTarget(
            name: "crash-runs",
            dependencies: ["LMDBStore", "SQLiteStore", "ObjectGraph", "StoreInterface", "StoreModel", "TestSupport"],
            path: "Tests/CrashRuns", exclude: ["recorder.c"]),
    ],
    swiftLanguageModes: [.v6]
)

if withMacros {
    package.products.insert(.library(name: "Strata", targets: ["Strata"]), at: 0)
    package.products.insert(.library(name: "StrataSwiftData", targets: ["StrataSwiftData"]), at: 1)
    package.dependencies += [
        .package(url: "https://github.com/swiftlang/swift-syntax", from: "603.0.1")
    ]
    package.targets += [
        // Layer 6: the module that applications import.
        .macro(
            name: "StrataMacros",
            dependencies: [
                .product(name: "SwiftSyntaxMacros", package: "swift-syntax"),
                .product(name: "SwiftIfConfig", package: "swift-syntax"),
                .product(name: "SwiftCompilerPlugin", package: "swift-syntax"),
            ]),
        .target(
            name: "Strata",
            dependencies: [
                "ObjectGraph", "LMDBStore", "MemoryStore", "StoreFiles", "StoreInterface", "StoreModel", "StrataMacros",
            ]),
        // Layer 7: SwiftData's names.
        .target(
            name: "StrataSwiftData",
            dependencies: [
                "ObjectGraph", "LMDBStore", "MemoryStore", "SQLiteStore", "StoreInterface", "StoreModel", "Platform",
                "StrataMacros", .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "StrataMacrosTests",
            dependencies: [
                "StrataMacros", .product(name: "SwiftSyntaxMacrosGenericTestSupport", package: "swift-syntax"),
                .product(name: "SwiftIfConfig", package: "swift-syntax"),
            ]),
        .testTarget(
            name: "StrataTests", dependencies: ["Strata", "StrataSwiftData", "StrataTool", "SQLiteStore", "TestSupport"]),
        .testTarget(
            name: "StrataSwiftDataTests",
            dependencies: ["StrataSwiftData", "TestSupport", .product(name: "Logging", package: "swift-log")]),
        // The example of a program with typed models, which also has a separate manifest.
        .executableTarget(
            name: "todo", dependencies: ["Strata"], path: "Examples/TodoCLI/Sources/todo", packageAccess: false),
        .testTarget(name: "TodoTests", dependencies: ["todo"], path: "Examples/TodoCLI/Tests/TodoTests"),
    ]
}

// SwiftPM builds the tests of a package for the computer that compiles if one of them tests a macro, and all libraries twice. So `make test`
// builds the tests of the macros apart from the others: with STRATA_TESTS=macros, and with STRATA_TESTS=others.
switch Context.environment["STRATA_TESTS"] {
case "macros":
    package.name = "strata-macros"
    package.targets.removeAll { $0.type == .test && $0.name != "StrataMacrosTests" }
case "others": package.targets.removeAll { $0.name == "StrataMacrosTests" }
default: break
}

// `make docs` sets it: the plugin that builds the documentation is no dependency of packages that use this one.
if Context.environment["STRATA_DOCS"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0"))
}
