import Foundation
import Testing

/// The property wrapper for SwiftUI, against declarations of the part of SwiftUI that it uses: no other system of the tests has SwiftUI.
@Suite(.enabled(if: SwiftCompiler.shared != nil, "the built modules were not found next to the tests"))
struct QueryTests {
    private static let declarations = """
        import Foundation
        import Strata

        protocol DynamicProperty { mutating func update() }

        struct EnvironmentValues {}

        @propertyWrapper struct Environment<Value>: DynamicProperty {
            private let keyPath: KeyPath<EnvironmentValues, Value>
            init(_ keyPath: KeyPath<EnvironmentValues, Value>) { self.keyPath = keyPath }
            var wrappedValue: Value { EnvironmentValues()[keyPath: keyPath] }
            func update() {}
        }

        @propertyWrapper struct State<Value>: DynamicProperty {
            private final class Box { var value: Value; init(_ value: Value) { self.value = value } }
            private let box: Box
            init(wrappedValue: Value) { box = Box(wrappedValue) }
            var wrappedValue: Value { get { box.value } nonmutating set { box.value = newValue } }
            func update() {}
        }

        @MainActor protocol View {}
        struct Text: View { init(_ text: String) {} }

        extension View {
            nonisolated func environment<V>(_ keyPath: WritableKeyPath<EnvironmentValues, V>, _ value: V) -> some View { self }
        }

        """

    private static let use = """

        @Model final class Track { var title: String; var plays = 0 }

        struct Titles: View {
            @Query(where: #Predicate { $0.plays > 3 }, sortBy: [.init(\\.title)], limit: 20) private var tracks: Results<Track>?
            var body: some View { Text((tracks?.map(\\.title) ?? []).joined()) }
        }

        @MainActor func show(_ container: PersistentContainer) -> some View { Titles().strataContainer(container) }
        """

    /// Catches: a query that does not compile where SwiftUI exists.
    @Test func `S145: the query of SwiftUI compiles, and so does a view with it`() async throws {
        let compiler = try #require(SwiftCompiler.shared)
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../Sources/ObjectGraph/LiveResults/Query+SwiftUI.swift")
        let written = try String(contentsOf: file.standardized, encoding: .utf8)
        let entry = "@Entry public var strataContainer: PersistentContainer? = nil"
        try #require(written.contains("#if canImport(SwiftUI)") && written.contains(entry))
        let query = written.replacing("#if canImport(SwiftUI)", with: "#if true").replacing("import SwiftUI", with: "")
            .replacing("public ", with: "")
            .replacing(
                entry.replacing("public ", with: ""), with: "var strataContainer: PersistentContainer? { get { nil } set {} }")
        let source = Self.declarations + query + Self.use
        let messages = try await compiler.messages(about: source)
        #expect(messages.filter { $0.contains(" error: ") || $0.contains(" warning: ") } == [])
        // The same with a mistake, so that a source that the compiler never saw does not pass.
        let broken = try await compiler.messages(about: source + "\nlet titles: Int = Titles.self")
        #expect(broken.filter { $0.contains(" error: ") }.count == 1)
    }
}
