import Strata
import Testing

/// A letter with a relationship of each cardinality.
private enum Mail {
    @Model final class Letter {
        @Attribute(.unique) var code: String
        @Relationship(inverse: nil) var office: Office
        var sender: Office?
        var stamps: [Stamp] = [Stamp(text: "new")]

        init(code: String, office: Office) {
            self.code = code
            self.office = office
        }
    }

    @Model final class Office {
        @Attribute(.unique) var name: String
        init(name: String) { self.name = name }
    }

    @Model final class Stamp {
        @Attribute(.unique) var text: String
        init(text: String) { self.text = text }
    }

    static let types: [any PersistentModel.Type] = [Letter.self, Office.self, Stamp.self]
}

/// Relationships whose imported value is nil.
@Suite @MainActor struct ImportedNilTests {
    private struct ImportedLetter: Codable {
        var code = "a"
        var office: String?
        var sender: String?
        var stamps: [String]?
    }

    /// Catches: nil for a list that removes all members of the object, and nil for a required object that makes the save fail.
    @Test(arguments: TestStore.allCases, [false, true])
    func `S139, S178: nil clears an optional relationship to one object, and keeps every other one`(
        _ store: TestStore, _ inChild: Bool
    ) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(model: Model(Mail.types), store: description)
            let main = container.mainContext
            for name in ["Oslo", "Rome"] { main.insert(Mail.Office(name: name)) }
            main.insert(Mail.Stamp(text: "fragile"))
            let context = inChild ? main.newChild() : main
            let new = [ImportedLetter(office: "Oslo", sender: "Rome")]
            let letter = try context.insert(contentsOf: new, as: Mail.Letter.self)[0]
            #expect(letter.office.name == "Oslo" && letter.sender?.name == "Rome")
            #expect(letter.stamps.map(\.text) == ["new"], "a new object has the initial objects of its class")
            func update(_ value: ImportedLetter) throws {
                let updated = try context.upsert(contentsOf: [value], unique: \Mail.Letter.code)
                #expect(updated.count == 1 && updated[0] === letter)
            }
            try update(ImportedLetter(sender: "Oslo", stamps: ["fragile"]))
            #expect(letter.office.name == "Oslo" && letter.sender?.name == "Oslo")
            #expect(letter.stamps.map(\.text) == ["fragile"])
            try update(ImportedLetter())
            #expect(letter.office.name == "Oslo" && letter.sender == nil)
            #expect(letter.stamps.map(\.text) == ["fragile"])
            if inChild { try await context.save() }
            try await main.save()
            try update(ImportedLetter(office: "Rome", stamps: []))
            #expect(letter.office.name == "Rome" && letter.sender == nil && letter.stamps.isEmpty)
            try await context.save()
        }
    }
}
