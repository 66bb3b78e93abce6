import Foundation
import Strata
import TestSupport
import Testing

/// Conditions over to-many relationships of the type `[Model]?`, and captured optional lists.
@Suite struct OptionalListPredicateTests {
    @Model final class Folder {
        var limit = 0
        @Relationship(inverse: \Folder.parent) var children: [Folder]?
        @Relationship var parent: Folder?
        @Relationship(inverse: \Paper.folder) var papers: [Paper]?

        init(limit: Int) { self.limit = limit }
    }

    @Model final class Paper {
        @Attribute(.indexed) var size = 0
        @Relationship var folder: Folder?

        init(size: Int, folder: Folder?) {
            self.size = size
            self.folder = folder
        }
    }

    private func context(_ description: StoreDescription) async throws -> BackgroundContext {
        let context = try await PersistentContainer(for: Folder.self, Paper.self, store: description).coordinator
            .newBackgroundContext()
        await context.perform { context in
            let (empty, full) = (Folder(limit: 0), Folder(limit: 1))
            context.insert(empty)
            context.insert(full)
            for size in 1...3 { context.insert(Paper(size: size, folder: full)) }
            empty.parent = full
        }
        try await context.save()
        return context
    }

    @Test(arguments: TestStore.allCases)
    func `S134, S138: computed conditions over an optional list`(_ store: TestStore) async throws {
        try await store.use { description in
            try await context(description).perform { context in
                let conditions: [Predicate<Folder>] = [
                    #Predicate { ($0.papers?.count ?? 0) > ($0.children?.count ?? 0) },
                    #Predicate { ($0.papers?.count ?? 0) % 2 == 1 },
                    #Predicate { folder in (folder.papers?.filter { $0.size > folder.limit }.count ?? 0) > 1 },
                ]
                for condition in conditions {
                    let count = try context.count(where: condition)
                    #expect(count == 1)
                }
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `S135, S138: a captured optional list is looked up once`(_ store: TestStore) async throws {
        try await store.use { description in
            try await context(description).perform { context in
                for sizes in [[1, 2], nil] as [[Int]?] {
                    let request = FetchRequest<Paper>(
                        where: #Predicate { paper in
                            if let sizes { sizes.contains(paper.size) } else { true }
                        })
                    let (found, plan) = (try context.fetch(request).count, try context.explain(request))
                    #expect(found == (sizes == nil ? 3 : 2))
                    #expect(!plan.contains("computed in memory"))
                }
            }
        }
    }
}
