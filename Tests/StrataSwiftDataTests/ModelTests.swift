import StrataSwiftData
import Testing

/// Models in the shapes in which people write them: their values survive in a file.
@Suite struct ModelTests {
    @Test(arguments: ModelConfiguration.Store.allCases)
    func `comics keep their values and relationships in a file`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(Comic.self)
            let id: UUID
            do {
                let context = ModelContext(container)
                let comic = Comic(title: "Tim", labels: [Label("old"), Label("funny")])
                comic.cover = Data([1, 2, 3])
                comic.price = Decimal(string: "12.30")!
                comic.mood = .wild
                comic.spot = Spot(x: 1.5, y: -2)
                comic.words = ["a", "b"]
                comic.panels[1] = 3
                comic.isOpen = true
                comic.zoom = 3
                comic.progress = Progress(page: 7)
                context.insert(comic)
                context.insert(Remark("nice", on: comic))
                id = comic.id
                try context.save()
            }
            try await container.close()

            let again = try file.open(Comic.self)
            let fresh = ModelContext(again)
            let mood = Mood.wild
            let found = try fresh.fetch(FetchDescriptor<Comic>(predicate: #Predicate { $0.id == id && $0.mood == mood }))
            let same = try #require(found.first)
            #expect(same.title == "Tim" && same.cover == Data([1, 2, 3]) && same.price == Decimal(string: "12.30")!)
            #expect(same.mood == .wild && same.spot == Spot(x: 1.5, y: -2) && same.words == ["a", "b"] && same.panels == [0, 3])
            #expect(same.isOpen == false && same.zoom == 1 && same.shortTitle == "Tim")
            #expect(same.progress?.page == 7 && same.progress?.comic === same)
            #expect(same.labels.map(\.text).sorted() == ["funny", "old"])
            #expect(same.labels.first?.comics == [same])
            #expect(same.notes.map(\.text) == ["nice"] && same.notes.first?.comic === same)
            #expect(same.id == id && same.persistentModelID.entityName == "Comic")
            let note = try #require(same.notes.first)
            fresh.delete(same)
            let error = #expect(throws: (any Error).self) { try fresh.save() }
            #expect("\(error, default: "nothing")".contains("comic"), "the comic of a note is not optional")
            fresh.delete(note)
            try fresh.save()
            #expect(try fresh.fetchCount(FetchDescriptor<Progress>()) == 0)
            #expect(try fresh.fetchCount(FetchDescriptor<Label>()) == 2)
        }
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `trees keep optional collections and codable models`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let container = try file.open(Folder.self)
            let id: UUID
            do {
                let context = ModelContext(container)
                let root = Folder(name: "root")
                context.insert(root)
                let child = Folder(name: "child", parent: root)
                let decoded = try JSONDecoder().decode(File.self, from: Data(#"{"name": "a.txt", "version": 2}"#.utf8))
                child.files?.append(decoded)
                id = root.id
                try context.save()
            }
            try await container.close()

            let fresh = ModelContext(try file.open(Folder.self))
            let same = try #require(try fresh.fetch(FetchDescriptor<Folder>(predicate: #Predicate { $0.parent == nil })).first)
            #expect(same.id == id && same.name == "root")
            #expect(same.folders?.map(\.name) == ["child"])
            #expect(same.folders?.first?.files?.first?.version == 2)
            let text = try JSONEncoder().encode(try #require(same.folders?.first?.files?.first))
            #expect(String(decoding: text, as: UTF8.self).contains("a.txt"))
            fresh.delete(same)
            try fresh.save()
            #expect(try fresh.fetchCount(FetchDescriptor<File>()) == 0)
        }
    }

    @Test func `a schema describes what its models store`() throws {
        let schema = Schema([Comic.self])
        #expect(Set(schema.entities.map(\.name)) == ["Comic", "Progress", "Label", "Remark"])
        let comic = try #require(schema.entity(for: Comic.self))
        #expect(comic.attributesByName["id"]?.isUnique == true && comic.attributesByName["title"]?.isUnique == false)
        #expect(comic.attributesByName["cover"]?.isOptional == true)
        #expect(comic.attributesByName["zoom"] == nil && comic.attributesByName["isOpen"] == nil)
        #expect(comic.indices == [["title"], ["addedAt", "title"]])
        let labels = try #require(comic.relationshipsByName["labels"])
        #expect(labels.destination == "Label" && labels.inverseName == "comics" && !labels.isToOneRelationship)
        #expect(comic.relationshipsByName["notes"]?.inverseName == "comic")
        #expect(comic.relationshipsByName["progress"]?.deleteRule == .cascade)
        #expect(schema.entitiesByName["Folder"] == nil && Schema.entityName(for: Folder.self) == "Folder")
        #expect(try ModelContainer(for: Comic.self, configurations: .init(isStoredInMemoryOnly: true)).schema == schema)
    }

    @Test(arguments: ModelConfiguration.Store.allCases)
    func `a plan migrates a file through its versions`(_ store: ModelConfiguration.Store) async throws {
        try await TestFile.use(store) { file in
            let old = try ModelContainer(
                for: Schema(versionedSchema: RecipesV1.self), configurations: file.configuration)
            do {
                let context = ModelContext(old)
                context.insert(RecipesV1.Recipe(title: "soup", minutes: "20"))
                try context.save()
            }
            try await old.close()

            let schema = Schema(versionedSchema: RecipesV3.self)
            let container = try ModelContainer(
                for: schema, migrationPlan: RecipesPlan.self,
                configurations: [ModelConfiguration(schema: schema, url: file.url, store: store)])
            let migrated = ModelContext(container)
            let recipes = try migrated.fetch(FetchDescriptor<Recipe>())
            #expect(recipes.map(\.name) == ["soup"] && recipes.map(\.duration) == [4])
            #expect(!migrated.hasChanges)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `inverses in classes of another file make relationships, also of codable models`(_ store: TestStore) async throws {
        try await store.use(Talk.self) { container in
            let talk = Talk()
            #expect(talk.name == "untitled")
            talk.lines = [Line("first")]
            talk.guests = [Guest("Ada")]
            talk.speakers = [Speaker("Grace"), Speaker("Alan")]
            talk.opening = talk.lines.first
            talk.others = [Line("other")]
            #expect(talk.name == "untitled" && talk.lines.map(\.text) == ["first"] && talk.others.map(\.text) == ["other"])

            let context = ModelContext(container)
            context.insert(talk)
            try context.save()
            #expect(try context.fetch(FetchDescriptor<Line>()).map(\.text).sorted() == ["first", "other"])
            #expect(try context.fetch(FetchDescriptor<Guest>()).first?.talk === talk)
            #expect(try context.fetch(FetchDescriptor<Speaker>()).allSatisfy { $0.talk === talk && talk.speakers.contains($0) })
            #expect(talk.speakers.count == 2 && talk.lines.first?.talk === talk && talk.opening === talk.lines.first)
        }
    }
}
