// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "DictionaryStore",
    platforms: [.macOS(.v15)],
    products: [.library(name: "DictionaryStore", targets: ["DictionaryStore"])],
    dependencies: [.package(name: "strata", path: "../..")],
    targets: [
        .target(name: "DictionaryStore", dependencies: [.product(name: "StoreInterface", package: "strata")]),
        .testTarget(
            name: "DictionaryStoreTests",
            dependencies: [
                "DictionaryStore", .product(name: "StoreContract", package: "strata"),
                .product(name: "ObjectGraph", package: "strata"),
            ]),
    ],
    swiftLanguageModes: [.v6]
)
