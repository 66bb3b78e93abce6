import StrataSwiftData
import Testing

/// Two versions of a note that are not connected by a plan, and a model that has nothing in common with them.
private enum Full {
    @Model final class Note {
        var title: String
        var text = "long"
        init(title: String) { self.title = title }
    }
}

private enum Short {
    @Model final class Note {
        var title: String
        init(title: String) { self.title = title }
    }
}

@Model private final class Stranger {
    var name: String
    init(name: String) { self.name = name }
}

@Suite struct ContainerTests {
    @Test func `several configurations throw`() {
        let configurations = [
            ModelConfiguration("a", isStoredInMemoryOnly: true), ModelConfiguration("b", isStoredInMemoryOnly: true),
        ]
        #expect { try ModelContainer(for: Schema([ToDo.self]), configurations: configurations) } throws: { error in
            SwiftDataError.duplicateConfiguration ~= error
        }
    }

    @Test func `erasing deletes all objects of all models`() throws {
        let container = try inMemory(ToDo.self)
        let context = ModelContext(container)
        let item = ToDo("a")
        item.list = ToDoList(name: "work")
        context.insert(item)
        try context.save()
        try container.erase()
        let after = ModelContext(container)
        #expect(try after.fetchCount(FetchDescriptor<ToDo>()) == 0)
        #expect(try after.fetchCount(FetchDescriptor<ToDoList>()) == 0)
    }

    @Test func `without a plan, a migration drops what the models no longer have`() async throws {
        try await TestFile.use { file in
            let old = try file.open(Full.Note.self)
            do {
                let context = ModelContext(old)
                context.insert(Full.Note(title: "kept"))
                try context.save()
            }
            try await old.close()
            let new = try file.open(Short.Note.self)
            do {
                let context = ModelContext(new)
                #expect(try context.fetch(FetchDescriptor<Short.Note>()).map(\.title) == ["kept"])
                withExtendedLifetime(context) {}
            }
            try await new.close()
        }
    }

    @Test func `a file of other models is not opened and loses nothing`() async throws {
        try await TestFile.use { file in
            let old = try file.open(Full.Note.self)
            do {
                let context = ModelContext(old)
                context.insert(Full.Note(title: "kept"))
                try context.save()
            }
            try await old.close()
            #expect(throws: (any Error).self) { try file.open(Stranger.self) }
            let again = try file.open(Full.Note.self)
            do {
                let context = ModelContext(again)
                #expect(try context.fetch(FetchDescriptor<Full.Note>()).map(\.text) == ["long"])
                withExtendedLifetime(context) {}
            }
            try await again.close()
        }
    }
}
