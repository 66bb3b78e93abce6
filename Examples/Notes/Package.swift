// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "Notes",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "strata", path: "../..")],
    targets: [
        .executableTarget(name: "Notes", dependencies: [.product(name: "ObjectGraph", package: "strata")])
    ],
    swiftLanguageModes: [.v6]
)
