// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "EditSheet",
    platforms: [.macOS(.v15)],
    products: [.library(name: "EditSheet", targets: ["EditSheet"])],
    dependencies: [.package(name: "strata", path: "../..")],
    targets: [
        .target(name: "EditSheet", dependencies: [.product(name: "ObjectGraph", package: "strata")]),
        .testTarget(name: "EditSheetTests", dependencies: ["EditSheet", .product(name: "ObjectGraph", package: "strata")]),
    ],
    swiftLanguageModes: [.v6]
)
