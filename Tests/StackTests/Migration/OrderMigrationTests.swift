import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Models that give a relationship an order, take it away, or rename its inverse (S163).
@Suite struct OrderMigrationTests {
    private static let stores: [StoreKind] = [.lmdb, .sqlite]

    private static func open(_ bed: TestBed, _ model: Model) async throws -> (PersistentContainer, BackgroundContext) {
        try await bed.closed()
        let container = try await bed.container(model: model)
        return (container, container.coordinator.newBackgroundContext())
    }

    @Test(arguments: stores)
    func `S163: a relationship that becomes ordered begins in the order of keys`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let plain = try await bed.container(model: try Books.model(ordered: false))
        let id = try await Books.make(["a", "b", "c", "d"], in: plain.coordinator.newBackgroundContext())
        try await plain.close()
        let (ordered, worker) = try await Self.open(bed, try Books.model(version: 2))
        #expect(try await Books.titles(id, in: worker) == ["a", "b", "c", "d"])
        try await worker.perform { context throws in
            let book = try context.existingObject(with: id)
            book.arrangeChapters(["a", "b", "c", "d"])
            #expect(!context.hasChanges)
            context.makeChapter("e").setRelatedObject("book", to: book)
            #expect(book.chapterTitles == ["a", "b", "c", "d", "e"])
            book.arrangeChapters(["a", "d", "b", "x", "c", "e"])
            #expect(book.chapterTitles == ["a", "d", "b", "x", "c", "e"])
            let request = EntityFetchRequest("Chapter", sortBy: [AttributeSort("position in book")])
            #expect(try context.fetch(request).map(\.title) == ["a", "d", "b", "x", "c", "e"])
        }
        try await worker.save()
        #expect(try await Books.stored(id, in: ordered) == ["a", "d", "b", "x", "c", "e"])
        try await ordered.close()
    }

    @Test(arguments: stores)
    func `S163: a renamed inverse keeps the order, and without its order a relationship keeps its members`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container(model: try Books.model())
        let id = try await Books.make(["c", "a", "b"], in: first.coordinator.newBackgroundContext())
        try await first.close()
        let (renamed, worker) = try await Self.open(
            bed, try Books.model(reference: "volume", renamedFrom: "book", version: 2))
        #expect(try await Books.titles(id, in: worker) == ["c", "a", "b"])
        try await Books.arrange(id, "bcxa", in: worker)
        try await worker.save()
        try await renamed.close()
        let (plain, reader) = try await Self.open(bed, try Books.model(ordered: false, reference: "volume", version: 3))
        #expect(try await Books.titles(id, in: reader) == ["c", "a", "b", "x"], "the order of their keys")
        #expect(try plain.coordinator.store.verify() == [])
        try await plain.close()
    }
}
