import Observation
import Testing

// The code of the article "From an empty folder to a live list", compiled and run. The architecture tests compare both.

// Sources/Strata/Strata.docc/GettingStarted.md
import Foundation
import Strata

@Model final class Book {
    @Attribute(.length(1...200)) var title: String
    @Attribute(.indexed) var isRead = false
    var shelf: Shelf?
}

@Model final class Shelf {
    @Attribute(.unique) var name: String
    var books: [Book] = []
}
// end

// Sources/Strata/Strata.docc/GettingStarted.md
@MainActor final class Library {
    let container: PersistentContainer
    let unread: Results<Book>
    let shelves: Results<Shelf>

    init(store: StoreDescription) async throws {
        container = try await PersistentContainer(for: Book.self, Shelf.self, store: store)
        unread = try Results(
            FetchRequest<Book>(where: #Predicate { !$0.isRead }, sortBy: [.init(\.title)]),
            context: container.mainContext)
        shelves = try Results(FetchRequest<Shelf>(), context: container.mainContext)
    }
}
// end

// Sources/Strata/Strata.docc/GettingStarted.md
extension Library {
    func add(_ titles: [String], to shelfName: String) async throws {
        let context = container.mainContext
        let shelf = try context.upsert(unique: \Shelf.name, shelfName) { _ in }
        for title in titles {
            context.insert(Book(title: title, shelf: shelf))
        }
        try await context.save()
    }
}
// end

// Sources/Strata/Strata.docc/GettingStarted.md
extension Library {
    var lines: [String] {
        _ = shelves.count  // to follow the names of shelves too
        return unread.map { book in "\(book.title) (\(book.shelf?.name ?? "no shelf"))" }
    }

    func printChanges() async {
        for await update in unread.updates {
            print("\(unread.count) unread books, \(update.difference)")
        }
    }
}
// end

// Sources/Strata/Strata.docc/GettingStarted.md
@MainActor final class BookSheet {
    let book: Book
    private let draft: ManagedObjectContext

    init(editing book: Book, in parent: ManagedObjectContext) {
        draft = parent.newChild(name: "book sheet")
        self.book = draft.object(Book.self, with: book.id)
    }

    // Objects of the main actor must also be released there.
    isolated deinit {}

    /// Returns nil if the sheet can be closed, or the reason why the book cannot be saved.
    func done() async throws -> String? {
        do {
            try await draft.save(through: .store)
            return nil
        } catch SaveError.validation(let errors) {
            return errors.ruleViolations.map(\.message).joined(separator: "\n")
        }
    }
}
// end

@Suite struct BooksGuideTests {
    @MainActor @Test func `the program of the first article lists, edits and keeps books`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "strata-guide-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "books.strata")

        // Sources/Strata/Strata.docc/GettingStarted.md
        let library = try await Library(store: .lmdb(file))
        try await library.add(["Emma", "Dracula"], to: "Classics")
        print(library.lines)  // ["Dracula (Classics)", "Emma (Classics)"]

        let sheet = BookSheet(editing: library.unread[0], in: library.container.mainContext)
        sheet.book.title = ""
        print(try await sheet.done() ?? "saved")  // title must have 1 to 200 characters, has 0
        sheet.book.title = "Frankenstein"
        print(library.lines)  // ["Dracula (Classics)", "Emma (Classics)"]: the edit is not done yet
        print(try await sheet.done() ?? "saved")  // saved
        print(library.lines)  // ["Emma (Classics)", "Frankenstein (Classics)"]

        library.unread[0].isRead = true
        try await library.container.mainContext.save()
        print(library.lines)  // ["Frankenstein (Classics)"]
        try await library.container.close()
        // end

        let again = try await Library(store: .lmdb(file))
        #expect(again.lines == ["Frankenstein (Classics)"])
        let changes = Task { await again.printChanges() }
        try await again.add(["Ivanhoe"], to: "Classics")
        #expect(again.lines == ["Frankenstein (Classics)", "Ivanhoe (Classics)"])
        let refused = BookSheet(editing: again.unread[0], in: again.container.mainContext)
        refused.book.title = ""
        #expect(try await refused.done() == "title must have 1 to 200 characters, has 0")
        #expect(again.unread[0].title == "Frankenstein")
        changes.cancel()
        try await again.container.close()
    }

    @MainActor @Test(.timeLimit(.minutes(10))) func `renaming a shelf notifies a reader of the lines`() async throws {
        let library = try await Library(store: .memory)
        try await library.add(["Emma"], to: "Classics")
        let shelf = try #require(try library.container.mainContext.find(unique: \Shelf.name, "Classics")).id
        await withCheckedContinuation { continuation in
            withObservationTracking {
                _ = library.lines
            } onChange: {
                continuation.resume()
            }
            library.container.mainContext.object(Shelf.self, with: shelf).name = "Novels"
        }
        #expect(library.lines == ["Emma (Novels)"])
        try await library.container.close()
    }

    // Sources/Strata/Strata.docc/GettingStarted.md
    @MainActor @Test func `a book that is read leaves the list`() async throws {
        let library = try await Library(store: .memory)
        try await library.add(["Emma", "Dracula"], to: "Classics")
        library.unread[0].isRead = true
        try await library.container.mainContext.save()
        #expect(library.lines == ["Emma (Classics)"])
    }
    // end
}
