// swift-tools-version: 6.2
import PackageDescription

// libFuzzer targets. They are executables without a `main`, and the fuzzer's runtime calls their entry points. See README.md.
let package = Package(
    name: "fuzz",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "strata", path: "..")],
    targets: [
        "fuzz-page-decode", "fuzz-page-round-trip", "fuzz-packed-page", "fuzz-change-set", "fuzz-index-key",
        "fuzz-dictionary-record", "fuzz-large-value",
    ].map { name in
        .executableTarget(
            name: name,
            dependencies: [
                "ByteScript", .product(name: "PageCodec", package: "strata"), .product(name: "StoreInterface", package: "strata"),
            ])
    }
        + ["fuzz-store", "fuzz-stored-schema", "fuzz-names", "fuzz-file"].map { name in
            .executableTarget(
                name: name,
                dependencies: [
                    "ByteScript", .product(name: "ObjectGraph", package: "strata"),
                    .product(name: "StoreInterface", package: "strata"),
                ])
        }
        + [
            .executableTarget(
                name: "fuzz-dataset",
                dependencies: [
                    "ByteScript", .product(name: "Datasets", package: "strata"), .product(name: "SQLiteStore", package: "strata"),
                    .product(name: "StoreInterface", package: "strata"),
                ]),
            .target(
                name: "ByteScript",
                dependencies: [
                    .product(name: "PageCodec", package: "strata"), .product(name: "StoreInterface", package: "strata"),
                ]),
        ],
    swiftLanguageModes: [.v6]
)
