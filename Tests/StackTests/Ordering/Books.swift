import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// The model of the tests of ordered relationships: books with chapters in an order, and notes without one.
enum Books {
    static func model(
        ordered: Bool = true, reference: String = "book", renamedFrom: String? = nil, rule: DeleteRule = .cascade,
        version: Int = 1
    ) throws -> Model {
        try Model(
            [
                EntityDescription(
                    name: "Book",
                    properties: [
                        .attribute(.init(name: "title", type: .string)),
                        .relationship(
                            .init(
                                name: "chapters", destination: "Chapter", inverse: reference, cardinality: .toMany,
                                deleteRule: rule, isOrdered: ordered)),
                        .relationship(.init(name: "notes", destination: "Note", inverse: "book", cardinality: .toMany)),
                    ]),
                EntityDescription(
                    name: "Chapter",
                    properties: [
                        .attribute(.init(name: "title", type: .string, index: .unique)),
                        .relationship(
                            .init(
                                name: reference, destination: "Book", inverse: "chapters", cardinality: .toOne,
                                renamedFrom: renamedFrom)),
                        .attribute(.init(name: "pages", type: .int64)),
                    ]),
                EntityDescription(
                    name: "Note",
                    properties: [
                        .attribute(.init(name: "text", type: .string)),
                        .relationship(.init(name: "book", destination: "Book", inverse: "notes", cardinality: .toOne)),
                    ]),
            ], version: .init(version))
    }

    /// Creates a book with chapters, saves it to the store, and returns its id.
    static func make(_ titles: [String], in context: BackgroundContext) async throws -> ObjectID {
        let id = await context.perform { context in
            let book = context.insert("Book")
            book.setRelatedObjects("chapters", to: titles.map { context.makeChapter($0) })
            return book.objectID
        }
        try await context.save(through: .store)
        return id
    }

    static func titles(_ book: ObjectID, in context: BackgroundContext) async throws -> [String] {
        try await context.perform { try $0.existingObject(with: book).chapterTitles }
    }

    /// The titles of a book's chapters in a new context that reads the store.
    static func stored(_ book: ObjectID, in container: PersistentContainer) async throws -> [String] {
        try await container.coordinator.refresh()
        return try await titles(book, in: container.coordinator.newBackgroundContext())
    }

    /// Gives the chapters of a book an order, in which each title occurs once.
    static func arrange(_ book: ObjectID, _ titles: [String], in context: BackgroundContext) async throws {
        try await context.perform { try $0.existingObject(with: book).arrangeChapters(titles) }
    }

    /// Makes a chapter the last one of another book.
    static func move(_ title: String, of book: ObjectID, to other: ObjectID, in context: BackgroundContext) async throws {
        try await context.perform { context in
            let chapter = try context.existingObject(with: book).chapters.first { $0.title == title }
            try #require(chapter).setRelatedObject("book", to: context.existingObject(with: other))
        }
    }

    static func arrange(_ book: ObjectID, _ titles: String, in context: BackgroundContext) async throws {
        try await arrange(book, titles.map(String.init), in: context)
    }
}

extension ManagedObjectContext {
    @discardableResult
    func makeChapter(_ title: String) -> ManagedObject {
        let chapter = insert("Chapter")
        chapter["title"] = .string(title)
        return chapter
    }
}

extension ManagedObject {
    var title: String { if case .string(let title) = self["title"] { title } else { "" } }
    var chapters: [ManagedObject] {
        get { relatedObjects("chapters") }
        set { setRelatedObjects("chapters", to: newValue) }
    }
    var chapterTitles: [String] { chapters.map(\.title) }

    /// Sets the chapters to those with the titles, with new chapters for new titles.
    func arrangeChapters(_ titles: [String]) {
        guard let context = managedObjectContext else { return }
        let known = Dictionary(chapters.map { ($0.title, $0) }) { first, _ in first }
        chapters = titles.map { known[$0] ?? context.makeChapter($0) }
    }
}
