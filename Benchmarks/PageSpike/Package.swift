// swift-tools-version: 6.2
import PackageDescription

// Small measurements for Docs/Internals/FileFormat.md: the number of objects per page, the cost of the codec, and the size from
// which values are stored out of line.
let package = Package(
    name: "page-spike",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "strata", path: "../..")],
    targets: [
        .systemLibrary(
            name: "CLMDBSpike", pkgConfig: "lmdb", providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])]),
        .executableTarget(name: "page-spike", dependencies: ["CLMDBSpike"]),
        .executableTarget(
            name: "codec-timing",
            dependencies: [.product(name: "PageCodec", package: "strata"), .product(name: "StoreInterface", package: "strata")]),
        .executableTarget(
            name: "value-sizes",
            dependencies: [.product(name: "ObjectGraph", package: "strata"), .product(name: "StoreInterface", package: "strata")]),
    ],
    swiftLanguageModes: [.v6]
)
