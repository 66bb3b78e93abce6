import Foundation
import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The results that the property wrapper for SwiftUI keeps, where SwiftUI does not exist.
@Suite @MainActor struct QueryStorageTests {
    private static func container(_ bed: TestBed, _ titles: [String]) async throws -> PersistentContainer {
        let container = try await bed.container(model: Model([Poster.self]))
        for title in titles { container.mainContext.insert("Poster")["title"] = .string(title) }
        return container
    }

    private static let all = FetchRequest<Poster>(sortBy: [.init(\.title)])
    private static let others = FetchRequest<Poster>(where: #Predicate { $0.title != "c" }, sortBy: [.init(\.title)])
    /// A request that cannot be fetched, because the property is computed.
    private static let refused = FetchRequest<Poster>(where: #Predicate { $0.shoutedTitle == "a!" })

    @Test(arguments: StoreKind.allCases)
    func `S145: a query is nil without a container, follows it, and fetches again for another request or container`(
        _ kind: StoreKind
    ) async throws {
        let (bed, otherBed) = (try TestBed(kind), try TestBed(kind))
        let container = try await Self.container(bed, ["d", "a", "b"])
        let other = try await Self.container(otherBed, ["x"])
        let storage = QueryStorage<Poster>()
        storage.update(Self.all, in: nil)
        #expect(storage.results == nil && storage.error == nil)
        storage.update(Self.all, in: container.mainContext)
        let first = try #require(storage.results)
        #expect(first.map(\.title) == ["a", "b", "d"] && storage.error == nil)
        // SwiftUI updates the query before each reading of the view.
        storage.update(FetchRequest<Poster>(sortBy: [.init(\.title)]), in: container.mainContext)
        storage.update(Self.all, in: nil)
        #expect(storage.results === first)
        container.mainContext.insert("Poster")["title"] = "c"
        container.mainContext.processPendingChanges()
        #expect(storage.results?.map(\.title) == ["a", "b", "c", "d"])
        storage.update(Self.others, in: container.mainContext)
        #expect(storage.results !== first && storage.results?.map(\.title) == ["a", "b", "d"])
        storage.update(Self.others, in: other.mainContext)
        #expect(storage.results?.map(\.title) == ["x"])
    }

    /// Catches: a request that is taken for the one before, because their shortened texts are equal.
    @Test(arguments: StoreKind.allCases)
    func `S145: a query fetches again for a request that differs only where its text is cut`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let long = String(repeating: "x", count: 60)
        let (first, second) = (long + "a", long + "b")
        let container = try await Self.container(bed, [first, second, "y", "z"])
        func titled(_ wanted: String) -> FetchRequest<Poster> {
            FetchRequest<Poster>(where: #Predicate { $0.title == wanted }, sortBy: [.init(\.title)])
        }
        func among(_ last: String) -> FetchRequest<Poster> {
            let wanted = (0..<20).map { "none \($0)" } + [last]
            return FetchRequest<Poster>(where: #Predicate { wanted.contains($0.title) }, sortBy: [.init(\.title)])
        }
        let storage = QueryStorage<Poster>()
        storage.update(titled(first), in: container.mainContext)
        #expect(storage.results?.map(\.title) == [first])
        storage.update(titled(second), in: container.mainContext)
        #expect(storage.results?.map(\.title) == [second])
        storage.update(among("y"), in: container.mainContext)
        #expect(storage.results?.map(\.title) == ["y"])
        let shown = storage.results
        storage.update(among("y"), in: container.mainContext)
        #expect(storage.results === shown, "an equal request is not fetched again")
        storage.update(among("z"), in: container.mainContext)
        #expect(storage.results?.map(\.title) == ["z"])
    }

    /// Catches: a computed condition that is taken for the one before, because its text leaves out what it captures.
    @Test(arguments: StoreKind.allCases)
    func `S145: a query fetches again if only a captured value of a computed condition differs`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed, ["x", "y", "z"])
        func among(_ last: String) -> FetchRequest<Poster> {
            let wanted = (0..<20).map { "none \($0)" } + [last]
            return FetchRequest<Poster>(
                where: #Predicate { poster in wanted.contains { $0 == poster.title } }, sortBy: [.init(\.title)])
        }
        func ranked(_ title: String) -> FetchRequest<Poster> {
            let ranks = Dictionary(uniqueKeysWithValues: (0..<20).map { ("none \($0)", 5) } + [(title, 5)])
            return FetchRequest<Poster>(where: #Predicate { ranks[$0.title, default: 0] > 3 }, sortBy: [.init(\.title)])
        }
        func among(_ last: String, orTitled title: String) -> FetchRequest<Poster> {
            let wanted = (0..<20).map { "none \($0)" } + [last]
            return FetchRequest<Poster>(
                where: #Predicate { poster in poster.title == title || wanted.contains { $0 == poster.title } },
                sortBy: [.init(\.title)])
        }
        let storage = QueryStorage<Poster>()
        for last in ["y", "z"] {
            storage.update(among(last), in: container.mainContext)
            #expect(storage.results?.map(\.title) == [last])
            let shown = storage.results
            storage.update(among(last), in: container.mainContext)
            #expect(storage.results === shown, "an equal request is not fetched again")
        }
        for title in ["x", "y"] {
            storage.update(ranked(title), in: container.mainContext)
            #expect(storage.results?.map(\.title) == [title])
        }
        for last in ["y", "z"] {
            storage.update(among(last, orTitled: "x"), in: container.mainContext)
            #expect(storage.results?.map(\.title) == ["x", last])
        }
    }

    /// Catches: a request whose results were given up for those of a request that failed, and that is not fetched again.
    @Test(arguments: StoreKind.allCases)
    func `S145: a query whose fetch fails is nil with the error, until a fetch succeeds`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let container = try await Self.container(bed, ["a", "d"])
        let storage = QueryStorage<Poster>()
        storage.update(Self.all, in: container.mainContext)
        for _ in 0..<2 {
            storage.update(Self.refused, in: container.mainContext)
            #expect(storage.results == nil && storage.error is FetchError)
        }
        storage.update(Self.all, in: container.mainContext)
        #expect(storage.results?.map(\.title) == ["a", "d"] && storage.error == nil)
    }
}

private final class Poster: PersistentModel {
    private let anchor: ModelAnchor
    var managedObject: ManagedObject { anchor.object }

    var title: String { managedObject.get(0) }
    var shoutedTitle: String { title + "!" }

    init(managedObject: ManagedObject) { anchor = ModelAnchor(managedObject) }

    static let entityDescription = EntityDescription(
        name: "Poster", properties: [.attribute(AttributeDescription("title", of: \Poster.title))])

    // Right because it is never changed.
    nonisolated(unsafe) static let columnsByKeyPath: [AnyKeyPath: String] = [\Poster.title: "title"]
}
