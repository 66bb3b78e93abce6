import Foundation
import Testing

/// Each change of the public surface is seen in review: the list of public names is a file of the repository.
@Suite struct PublicSurfaceTests {
    private static let baseline = Repository.root.appending(path: "Tests/ArchitectureTests/Fixtures/public-api.txt")

    /// One line per public declaration: the module, and the name with the types around it.
    private static var present: [String] {
        LayerTable.modules.filter { $0.name != "StrataMacros" }.flatMap { module in
            PublicNames.of(Repository.modules[module.name] ?? []).map { "\(module.name) \($0)" }
        }.sorted()
    }

    @Test func `the public names are those of the baseline`() throws {
        let present = Self.present
        if ProcessInfo.processInfo.environment["STRATA_UPDATE_PUBLIC_API"] == "1" {
            try (present.joined(separator: "\n") + "\n").write(to: Self.baseline, atomically: true, encoding: .utf8)
        }
        let known = try String(contentsOf: Self.baseline, encoding: .utf8).split(separator: "\n").map(String.init)
        let changes = present.difference(from: known)
        guard !changes.isEmpty else { return }
        let lines = changes.map { change in
            switch change {
            case .insert(_, let name, _): "+ \(name)"
            case .remove(_, let name, _): "- \(name)"
            }
        }
        Issue.record(
            """
            the public surface has changed:
            \(lines.joined(separator: "\n"))
            If that is meant, write the new list with `STRATA_UPDATE_PUBLIC_API=1 swift test --filter PublicSurfaceTests`.
            """)
    }

    /// A module that another one re-exports whole becomes part of its surface, so names are listed. The operators of models are found
    /// only in a whole module. `Platform` has the C library and the standard library's locks. Model files for SwiftData use Foundation
    /// and Observation.
    @Test func `modules are not exported whole`() {
        let allowed: [String: Set<String>] = [
            "Strata": ["ObjectGraph"],
            "StrataSwiftData": ["Foundation", "Observation"],
            "Platform": ["Synchronization", "Glibc", "Musl", "Darwin"],
        ]
        for (name, files) in Repository.modules {
            for file in files {
                for (number, line) in file.codeLines(with: "@_exported") {
                    // `@_exported import struct Module.Name` exports one name.
                    guard let exported = line.firstMatch(of: /import (\w+)$/)?.1 else { continue }
                    #expect(
                        allowed[name]?.contains(String(exported)) == true,
                        "\(file.path):\(number): \(name) exports all of \(exported). Export the names that are needed")
                }
            }
        }
    }

    @Test func `public names are found in types, extensions, protocols and enumerations`() {
        let file = SourceFile(
            path: "Sample.swift",
            text: """
                import Foundation
                public struct Box<T: Hashable>: Sendable where T: Sendable {
                    public private(set) var a = { 1 }(), b: Int = 2
                    var hidden = 0
                    public init?(_ x: Dictionary<Int, T>, by y: Int = f(1, 2)) { func inner() {} }
                    @inlinable public static func == (l: Self, r: Self) -> Bool { true }
                    public subscript(i: Int, at j: Int) -> Int { get { 0 } set {} }
                    package func notOurs() {}
                    public enum Kind: String { case one = "x", two; case three(Int, b: String) }
                    enum Hidden { case gone; public static let alsoGone = 1 }
                }
                #if DEBUG
                public protocol Shape: AnyObject { associatedtype Part; var size: Int { get }
                    func part(
                        _ n: Int, of name: @escaping (Int) -> Void
                    ) async throws -> Part
                }
                #endif
                public extension Int { func doubled() -> Int { self * 2 } }
                extension Hidden2 { public func gone() {} }
                struct Hidden2 { public var gone: Int }
                extension Box.Kind { public var title: String { "" } }
                extension String { @_spi(X) public func trick() {}; class func no() {} }
                public actor Worker { public nonisolated(unsafe) let x: Int }
                public func free<E: Error>(_ body: () throws(E) -> Void) {}
                """)
        #expect(
            PublicNames.of([file]) == [
                "@_spi String.trick()", "Box", "Box.==(l:r:)", "Box.Kind", "Box.Kind.one", "Box.Kind.three", "Box.Kind.title",
                "Box.Kind.two", "Box.a", "Box.init(_:by:)", "Box.subscript(_:at:)", "Int.doubled()", "Shape", "Shape.Part",
                "Shape.part(_:of:)", "Shape.size", "Worker", "Worker.x", "free(_:)",
            ])
    }
}
