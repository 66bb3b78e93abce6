import Foundation
import Testing

/// The property wrapper for SwiftUI, against declarations of the part of SwiftUI that it uses: no other system of the tests has SwiftUI.
/// `QueryStorageTests` run its fetches.
@Suite(.enabled(if: SwiftCompiler.shared != nil, "the built modules were not found next to the tests"))
struct QueryTests {
    private static let declarations = """
        import Foundation
        import Strata

        protocol DynamicProperty { mutating func update() }

        struct EnvironmentValues {}

        struct RequestIdentity: Equatable {
            init<M: PersistentModel>(_ request: FetchRequest<M>, in context: ManagedObjectContext) {}
        }

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

        @MainActor protocol View { associatedtype Body: View; @ViewBuilder var body: Body { get } }
        extension Never: View { var body: Never { fatalError() } }
        extension Optional: View where Wrapped: View { var body: Never { fatalError() } }
        struct Text: View { init(_ text: String) {}; var body: Never { fatalError() } }

        struct ForEach<Data: RandomAccessCollection, ID: Hashable, Content: View>: View {
            init(_ data: Data, id: KeyPath<Data.Element, ID>, content: @escaping (Data.Element) -> Content) {}
            var body: Never { fatalError() }
        }

        @resultBuilder enum ViewBuilder {
            static func buildBlock<V: View>(_ view: V) -> V { view }
            static func buildIf<V: View>(_ view: V?) -> V? { view }
        }

        extension View {
            nonisolated func environment<V>(_ keyPath: WritableKeyPath<EnvironmentValues, V>, _ value: V) -> some View { self }
        }

        """

    private static let use = #"""

        @Model final class Piece { var title: String; var plays = 0 }

        // Sources/Strata/Strata.docc/ObservingResults.md
        struct PieceList: View {
            @Query(where: #Predicate { $0.plays > 3 }, sortBy: [.init(\.title)], limit: 20)
            private var pieces: Results<Piece>?

            var body: some View {
                if let pieces {
                    ForEach(Array(pieces), id: \.id) { piece in Text(piece.title) }
                }
            }
        }

        struct Library: View {
            let container: PersistentContainer

            var body: some View { PieceList().strataContainer(container) }
        }
        // end

        extension PieceList { var message: String { _pieces.error.map { "\($0)" } ?? "" } }
        """#

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
        let broken = try await compiler.messages(about: source + "\nlet list: Int = PieceList.self")
        #expect(broken.filter { $0.contains(" error: ") }.count == 1)
    }
}
