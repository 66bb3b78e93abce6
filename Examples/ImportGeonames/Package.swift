// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "ImportGeonames",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "strata", path: "../..")],
    targets: [
        .executableTarget(
            name: "import-geonames",
            dependencies: [
                .product(name: "ObjectGraph", package: "strata"), .product(name: "StoreInterface", package: "strata"),
            ]),
        .testTarget(name: "ImportGeonamesTests", dependencies: ["import-geonames"]),
    ],
    swiftLanguageModes: [.v6]
)
