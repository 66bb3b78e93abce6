// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "TodoCLI",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "strata", path: "../..")],
    targets: [
        .executableTarget(name: "todo", dependencies: [.product(name: "Strata", package: "strata")]),
        .testTarget(name: "TodoTests", dependencies: ["todo"]),
    ],
    swiftLanguageModes: [.v6]
)
