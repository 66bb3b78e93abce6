import Foundation
import Strata
import Testing

/// A value whose stored bytes depend on the order of a set, which equal sets may not share.
private struct Labels: CodableAttribute, Equatable, Sendable { var names: Set<String> = [] }

/// A version that is stored as text and compared by its numbers.
private struct Release: AttributeValue, Codable, Comparable, Sendable {
    var numbers: [Int]

    init(_ numbers: Int...) { self.numbers = numbers }

    init?(_ value: Value) {
        guard case .string(let text) = value else { return nil }
        numbers = text.split(separator: ".").compactMap { Int($0) }
    }

    static var columnType: ColumnType { .string }
    static var acceptsEveryValue: Bool { true }
    static var missingValue: Value { .string("0") }
    static var fallback: Release? { Release(0) }
    var storeValue: Value { .string(numbers.map(String.init).joined(separator: ".")) }

    static func < (a: Release, b: Release) -> Bool { a.numbers.lexicographicallyPrecedes(b.numbers) }
}

@Model private final class Parcel {
    var name: String
    var labels: Labels?
    var release: Release

    init(name: String, labels: Labels? = nil, release: Release = Release(1)) {
        self.name = name
        self.labels = labels
        self.release = release
    }
}

/// Predicates over types of a program, which decide themselves what is equal and what is less (S134, S138).
@Suite struct ComparedValueTests {
    @Test(arguments: TestStore.allCases)
    @MainActor func `S134: values of a program's types compare as in Swift, not as they are stored`(_ store: TestStore)
        async throws
    {
        try await store.use { description in
            let container = try await PersistentContainer(for: Parcel.self, store: description)
            let context = container.mainContext
            let names = (0..<50).map { "\($0)" }
            // Equal sets of different capacities have their elements in different orders.
            var roomy = Set<String>(minimumCapacity: 4_096)
            roomy.formUnion(names)
            context.insert(Parcel(name: "a", labels: Labels(names: Set(names)), release: Release(1, 9)))
            context.insert(Parcel(name: "b", labels: Labels(names: ["x"]), release: Release(1, 10)))
            context.insert(Parcel(name: "c"))
            let (wanted, bound) = (Labels(names: roomy), Release(1, 10))
            func found(_ predicate: Predicate<Parcel>) throws -> [String] {
                try context.fetch(FetchRequest(where: predicate, sortBy: [.init(\.name)])).map(\.name)
            }
            for _ in 0..<2 {
                #expect(try found(#Predicate { $0.labels == wanted }) == ["a"])
                #expect(try found(#Predicate { $0.labels != wanted }) == ["b", "c"])
                #expect(try found(#Predicate { $0.labels == nil }) == ["c"])
                #expect(try found(#Predicate { $0.release < bound }) == ["a", "c"])
                #expect(try found(#Predicate { $0.release == bound }) == ["b"])
                try context.saveNow()
            }
            try await container.close()
        }
    }
}
