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

    /// Mixes of songs, or tapes of tunes, or one of the names with the other. Both names keep their hints in later versions.
    private static func lists(_ entity: String, _ relationship: String, version: Int) throws -> Model {
        try Model(
            [
                EntityDescription(
                    name: entity,
                    properties: [
                        .attribute(.init(name: "title", type: .string)),
                        .relationship(
                            .init(
                                name: relationship, destination: "Song", inverse: "mixes", cardinality: .toMany,
                                renamedFrom: relationship == "songs" ? nil : "songs", isOrdered: true)),
                    ], renamedFrom: entity == "Mix" ? nil : "Mix"),
                EntityDescription(
                    name: "Song",
                    properties: [
                        .attribute(.init(name: "title", type: .string)),
                        .relationship(.init(name: "mixes", destination: entity, inverse: relationship, cardinality: .toMany)),
                    ]),
            ], version: .init(version))
    }

    /// Catches: positions that are found only under the first names of both the entity and the relationship, and are dropped otherwise.
    @Test(arguments: stores, [true, false])
    func `S163: a many-to-many order stays when entity and relationship are renamed one after the other`(
        _ kind: StoreKind, _ isEntityFirst: Bool
    ) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container(model: try Self.lists("Mix", "songs", version: 1))
        let worker = first.coordinator.newBackgroundContext()
        let id = try await Mixes.make("abc", in: worker)
        try await Mixes.arrange(id, "cab", in: worker)
        try await worker.save()
        try await first.close()
        let (entity, relationship) = isEntityFirst ? ("Tape", "songs") : ("Mix", "tunes")
        let (second, _) = try await Self.open(bed, try Self.lists(entity, relationship, version: 2))
        try await second.close()
        let (last, reader) = try await Self.open(bed, try Self.lists("Tape", "tunes", version: 3))
        let titles = try await reader.perform { try $0.existingObject(with: id).relatedObjects("tunes").map(\.title) }
        #expect(titles == ["c", "a", "b"])
        #expect(try await last.coordinator.verify() == [])
        try await last.close()
    }

    /// Catches: positions that keep leading to the former members, which refuses the stage or leaves positions without pairs.
    @Test(arguments: stores)
    func `S164: a custom stage changes the destination of an ordered many-to-many relationship`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        let first = try await bed.container(model: try Mixes.model())
        let id = try await Mixes.make("abc", in: first.coordinator.newBackgroundContext())
        try await first.close()
        try await bed.closed()
        let clips = try Model(
            [
                EntityDescription(
                    name: "Mix",
                    properties: [
                        .attribute(.init(name: "title", type: .string)),
                        .relationship(
                            .init(name: "songs", destination: "Clip", inverse: "mixes", cardinality: .toMany, isOrdered: true)),
                    ]),
                EntityDescription(
                    name: "Clip",
                    properties: [
                        .attribute(.init(name: "title", type: .string)),
                        .relationship(.init(name: "mixes", destination: "Mix", inverse: "songs", cardinality: .toMany)),
                    ]),
            ], version: .init(2))
        let plan = MigrationPlan([
            .custom(
                from: try Mixes.model(), to: clips,
                didMigrate: { context in
                    for mix in try context.fetch(EntityFetchRequest("Mix")) {
                        let made = ["x", "y", "z"].map { title -> ManagedObject in
                            let clip = context.insert("Clip")
                            clip["title"] = .string(title)
                            return clip
                        }
                        mix.setRelatedObjects("songs", to: [made[2], made[0], made[1]])
                    }
                })
        ])
        let migrated = try await PersistentContainer(model: clips, store: bed.description, migrationPlan: plan)
        #expect(try await Mixes.stored(id, in: migrated) == "zxy")
        #expect(try Mixes.positionCount(in: migrated) == 3)
        #expect(try await migrated.coordinator.verify() == [])
        try await migrated.close()
    }
}
