import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// A model whose entity, attributes and relationships of each kind were renamed (S163).
private enum Library {
    static func model(isRenamed: Bool) throws -> Model {
        let (author, book) = isRenamed ? ("Writer", "Work") : ("Author", "Book")
        func former(_ name: String) -> String? { isRenamed ? name : nil }
        return try Model(
            [
                EntityDescription(
                    name: author,
                    properties: [
                        .attribute(.init(name: isRenamed ? "fullName" : "name", type: .string, renamedFrom: former("name"))),
                        relation(isRenamed ? "works" : "books", book, isRenamed ? "writer" : "author", .toMany, former("books")),
                        relation(
                            isRenamed ? "teacher" : "mentor", author, isRenamed ? "students" : "pupils", .toOne, former("mentor")),
                        relation(
                            isRenamed ? "students" : "pupils", author, isRenamed ? "teacher" : "mentor", .toMany, former("pupils")
                        ),
                    ], renamedFrom: former("Author")),
                EntityDescription(
                    name: book,
                    properties: [
                        .attribute(
                            .init(
                                name: isRenamed ? "heading" : "title", type: .string, index: .indexed,
                                renamedFrom: former("title"))),
                        relation(
                            isRenamed ? "writer" : "author", author, isRenamed ? "works" : "books", .toOne, former("author")),
                        relation(isRenamed ? "labels" : "tags", "Tag", isRenamed ? "works" : "books", .toMany, former("tags")),
                    ], renamedFrom: former("Book")),
                EntityDescription(
                    name: "Tag",
                    properties: [
                        .attribute(.init(name: "text", type: .string)),
                        relation(isRenamed ? "works" : "books", book, isRenamed ? "labels" : "tags", .toMany, former("books")),
                    ]),
            ], version: .init(isRenamed ? 2 : 1))
    }

    private static func relation(
        _ name: String, _ destination: String, _ inverse: String, _ cardinality: Cardinality, _ former: String?
    ) -> PropertyDescription {
        .relationship(
            .init(name: name, destination: destination, inverse: inverse, cardinality: cardinality, renamedFrom: former))
    }

    static func fill(_ bed: TestBed) async throws {
        let container = try await bed.container(model: try model(isRenamed: false))
        let worker = container.newBatchOperationContext()
        await worker.perform { context in
            let tags = (0..<3).map { number -> ManagedObject in
                let tag = context.insert("Tag")
                tag["text"] = .string("tag \(number)")
                return tag
            }
            var mentor: ManagedObject?
            for number in 0..<10 {
                let author = context.insert("Author")
                author["name"] = .string("author \(number)")
                author.setRelatedObject("mentor", to: mentor)
                mentor = author
                for place in 0..<3 {
                    let book = context.insert("Book")
                    book["title"] = .string("book \(number)/\(place)")
                    book.setRelatedObject("author", to: author)
                    book.setRelatedObjects("tags", to: Array(tags.prefix(place)))
                }
            }
        }
        try await worker.save(.durable)
    }

    /// Returns one line per object, with its values and those of related objects, by the names of one model.
    static func lines(_ container: PersistentContainer, isRenamed: Bool) async throws -> [String] {
        let name = isRenamed ? "fullName" : "name"
        let title = isRenamed ? "heading" : "title"
        @Sendable func text(_ value: Value?) -> String { if case .string(let text)? = value { text } else { "-" } }
        return try await container.newBatchOperationContext().perform { context in
            let authors = try context.fetch(EntityFetchRequest(isRenamed ? "Writer" : "Author")).map { author in
                let books = author.relatedObjects(isRenamed ? "works" : "books").map { text($0[title]) }.sorted()
                let pupils = author.relatedObjects(isRenamed ? "students" : "pupils").map { text($0[name]) }
                let mentor = author.relatedObject(isRenamed ? "teacher" : "mentor")
                return "\(text(author[name])): \(books) \(pupils) \(text(mentor?[name]))"
            }
            let tags = try context.fetch(EntityFetchRequest("Tag")).map { tag in
                "\(text(tag["text"])): \(tag.relatedObjects(isRenamed ? "works" : "books").map { text($0[title]) }.sorted())"
            }
            let books = try context.fetch(EntityFetchRequest(isRenamed ? "Work" : "Book")).map { book in
                let tags = book.relatedObjects(isRenamed ? "labels" : "tags").map { text($0["text"]) }.sorted()
                return "\(text(book[title])): \(tags) \(text(book.relatedObject(isRenamed ? "writer" : "author")?[name]))"
            }
            return (authors + tags + books).sorted()
        }
    }
}

@Suite struct RenamingTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    @Test(arguments: kinds) func S163_renamedEntitiesAttributesAndRelationshipsOfEachKindKeepTheirObjects(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await Library.fill(bed)
        let before: [String]
        do {
            let container = try await bed.container(model: try Library.model(isRenamed: false))
            before = try await Library.lines(container, isRenamed: false)
        }
        #expect(before.count == 10 + 3 + 30)
        try await bed.closed()
        let container = try await bed.container(model: try Library.model(isRenamed: true))
        try await container.coordinator.finishMigration()
        #expect(try await Library.lines(container, isRenamed: true) == before)
        // Saves under the new names go to the same columns.
        let worker = container.newBatchOperationContext()
        let count = try await worker.perform { context in
            let request = EntityFetchRequest("Work", matching: .equal("heading", .string("book 4/2")))
            let work = try #require(try context.fetch(request).first)
            let teacher = work.relatedObject("writer")?.relatedObject("teacher")
            work.setRelatedObject("writer", to: teacher)
            work.setRelatedObjects("labels", to: [])
            return teacher?.relatedObjects("works").count
        }
        #expect(count == 4)
        try await worker.save(.durable)
        #expect(try await Library.lines(container, isRenamed: true).contains("book 4/2: [] author 3"))
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
    }

    @Test(arguments: kinds) func S163_aRelationshipWithoutItsOldNameIsAnotherOne(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Library.fill(bed)
        try await bed.closed()
        // All names are new, and nothing relates them to the old names.
        let entities = [EntityDescription(name: "Tag", properties: [.attribute(.init(name: "text", type: .string))])]
        let container = try await PersistentContainer(
            model: try Model(entities, version: .init(3)), store: bed.description, allowsDataLoss: ["Author", "Book"])
        let count = try await container.newBatchOperationContext().perform { try $0.count(EntityFetchRequest("Tag")) }
        #expect(count == 3)
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
    }

    /// Catches: tables that are looked for under the code points of the model's names, and are said to be gone.
    @Test(arguments: kinds)
    func `S163: a model opens a file that spells its names with other code points`(_ kind: StoreKind) async throws {
        func model(_ version: Int, _ accent: String) throws -> Model {
            let extra = PropertyDescription.attribute(.init(name: "extra", type: .int64))
            return try Model(
                [
                    EntityDescription(
                        name: "Caf\(accent)",
                        properties: [
                            .attribute(.init(name: "pr\(accent)nom", type: .string, index: .indexed)),
                            .relationship(.init(name: "pr\(accent)s", destination: "Cit\(accent)", cardinality: .toMany)),
                        ] + (version > 1 ? [extra] : [])),
                    EntityDescription(name: "Cit\(accent)", properties: [.attribute(.init(name: "code", type: .int64))]),
                ], version: .init(version))
        }
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        let bed = try TestBed(kind)
        let first = try await bed.container(model: model(1, composed))
        try await first.newBatchOperationContext().perform(andSave: .durable) { context in
            let object = context.insert("Caf\u{E9}")
            object["pr\u{E9}nom"] = "a"
            object.setRelatedObjects("pr\u{E9}s", to: [context.insert("Cit\u{E9}")])
        }
        try await first.close()
        for (version, accent) in [(1, decomposed), (2, decomposed), (2, composed)] {
            try await bed.closed()
            let container = try await bed.container(model: model(version, accent))
            let found = try await container.read { context in
                try context.fetch(EntityFetchRequest("Caf\u{E9}", matching: .equal("pr\u{E9}nom", "a"))).map { object in
                    object.relatedObjects("pr\u{E9}s").count
                }
            }
            #expect(found == [1], "version \(version)")
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
        }
    }
}
