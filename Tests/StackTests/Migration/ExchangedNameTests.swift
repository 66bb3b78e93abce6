import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

/// Two names that are exchanged by `renamedFrom` (S165).
@Suite struct ExchangedNameTests {
    static let kinds: [StoreKind] = [.lmdb, .sqlite]

    /// Creates a model with entities, attributes, to-one and many-to-many relationships, each with a counterpart.
    private static func model(_ version: Int, exchanging: Bool, extra: Bool = false) throws -> Model {
        func former(_ name: String) -> String? { exchanging ? name : nil }
        func entity(_ name: String, _ twin: String) -> EntityDescription {
            EntityDescription(
                name: name, properties: [.attribute(.init(name: "mark", type: .string))], renamedFrom: former(twin))
        }
        func text(_ name: String, _ twin: String) -> PropertyDescription {
            .attribute(.init(name: name, type: .string, index: name == "a" ? .indexed : .none, renamedFrom: former(twin)))
        }
        func relation(_ name: String, _ twin: String, _ cardinality: Cardinality) -> PropertyDescription {
            .relationship(.init(name: name, destination: "Other", cardinality: cardinality, renamedFrom: former(twin)))
        }
        let properties =
            [
                text("a", "b"), text("b", "a"), relation("one", "two", .toOne), relation("two", "one", .toOne),
                relation("many", "more", .toMany), relation("more", "many", .toMany),
            ] + (extra ? [.attribute(.init(name: "extra", type: .bool))] : [])
        return try Model(
            [
                EntityDescription(name: "Thing", properties: properties),
                EntityDescription(name: "Other", properties: [.attribute(.init(name: "mark", type: .string))]),
                entity("Left", "Right"), entity("Right", "Left"),
            ], version: .init(version))
    }

    private static func fill(_ bed: TestBed, _ model: Model) async throws {
        let container = try await bed.container(model: model)
        let worker = container.newBatchOperationContext()
        await worker.perform { context in
            let others = (0..<3).map { number -> ManagedObject in
                let other = context.insert("Other")
                other["mark"] = .string("o\(number)")
                return other
            }
            let thing = context.insert("Thing")
            thing["a"] = .string("in a")
            thing["b"] = .string("in b")
            thing.setRelatedObject("one", to: others[0])
            thing.setRelatedObject("two", to: others[1])
            thing.setRelatedObjects("many", to: [others[0]])
            thing.setRelatedObjects("more", to: [others[1], others[2]])
            context.insert("Left")["mark"] = .string("left")
            for _ in 0..<2 { context.insert("Right")["mark"] = .string("right") }
        }
        try await worker.save(.durable)
    }

    private static func text(_ container: PersistentContainer) async throws -> String {
        try await container.coordinator.finishMigration()
        let findings = try container.coordinator.store.verify()
        #expect(findings == [])
        return try await container.newBatchOperationContext().perform { context in
            func text(_ object: ManagedObject?, _ name: String) -> String {
                if case .string(let text)? = object?[name] { text } else { "-" }
            }
            let found = try context.fetch(EntityFetchRequest("Thing", matching: .equal("a", .string("in a")))).count
            let thing = try #require(try context.fetch(EntityFetchRequest("Thing")).first)
            let many = thing.relatedObjects("many").map { text($0, "mark") }.sorted()
            let more = thing.relatedObjects("more").map { text($0, "mark") }.sorted()
            let left = try context.fetch(EntityFetchRequest("Left")).map { text($0, "mark") }
            let right = try context.fetch(EntityFetchRequest("Right")).map { text($0, "mark") }
            return "\(text(thing, "a")), \(text(thing, "b")), \(text(thing.relatedObject("one"), "mark")), "
                + "\(text(thing.relatedObject("two"), "mark")), \(many) \(more) \(left) \(right) \(found)"
        }
    }

    private static let before = #"in a, in b, o0, o1, ["o0"] ["o1", "o2"] ["left"] ["right", "right"] 1"#
    private static let after = #"in b, in a, o1, o0, ["o1", "o2"] ["o0"] ["right", "right"] ["left"] 0"#

    private static func open(_ bed: TestBed, _ model: Model) async throws -> String {
        try await bed.closed()
        return try await text(try await bed.container(model: model))
    }

    @Test(arguments: kinds) func `S165: exchanged names exchange what they hold, once`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed, Self.model(1, exchanging: false))
        #expect(try await Self.open(bed, Self.model(1, exchanging: false)) == Self.before)
        #expect(try await Self.open(bed, Self.model(2, exchanging: true)) == Self.after)
        try await bed.closed()
        let again = try await Self.model(2, exchanging: true).changes(opening: bed.description)
        #expect(again.isEmpty && again.refusal == nil, "\(again)")
        // Neither the next open nor a later model with the same `renamedFrom` exchanges them back.
        #expect(try await Self.open(bed, Self.model(2, exchanging: true)) == Self.after)
        #expect(try await Self.open(bed, Self.model(3, exchanging: true, extra: true)) == Self.after)
        #expect(try await Self.open(bed, Self.model(4, exchanging: false, extra: true)) == Self.after)
        #expect(try await Self.open(bed, Self.model(5, exchanging: true, extra: true)) == Self.before)
    }

    /// Catches: a custom stage that takes an exchanged entity or attribute for the one that had its name, and drops its values as converted.
    @Test(arguments: kinds) func `S165: exchanged names with other types are exchanged in a custom stage too`(
        _ kind: StoreKind
    ) async throws {
        func model(_ version: Int, isExchanged: Bool) throws -> Model {
            func entity(_ name: String, _ type: ColumnType, from former: String) -> EntityDescription {
                let (text, number): (ColumnType, ColumnType) = isExchanged ? (.int64, .string) : (.string, .int64)
                return EntityDescription(
                    name: name,
                    properties: [
                        .attribute(.init(name: "code", type: type)),
                        .attribute(.init(name: "a", type: text, renamedFrom: isExchanged ? "b" : nil)),
                        .attribute(.init(name: "b", type: number, renamedFrom: isExchanged ? "a" : nil)),
                    ], renamedFrom: isExchanged ? former : nil)
            }
            let types: [ColumnType] = isExchanged ? [.string, .int64] : [.int64, .string]
            return try Model(
                [
                    entity("Left", types[0], from: "Right"), entity("Right", types[1], from: "Left"),
                    EntityDescription(
                        name: "Thing",
                        properties: [
                            .relationship(
                                .init(name: "left", destination: isExchanged ? "Right" : "Left", cardinality: .toOne))
                        ]),
                ], version: .init(version))
        }
        let (first, second) = (try model(1, isExchanged: false), try model(2, isExchanged: true))
        let bed = try TestBed(kind)
        try await bed.container(model: first).coordinator.newBackgroundContext().perform(andSave: .durable) { context in
            let left = context.insert("Left")
            (left["code"], left["a"], left["b"]) = (.int(7), .string("text"), .int(3))
            context.insert("Right")["code"] = .string("seven")
            context.insert("Thing").setRelatedObject("left", to: left)
        }
        try await bed.closed()
        let plan = MigrationPlan([.custom(from: first, to: second)])
        let container = try await PersistentContainer(model: second, store: bed.description, migrationPlan: plan)
        try await container.coordinator.newBackgroundContext().perform { context in
            let right = try #require(try context.fetch(EntityFetchRequest("Right")).first)
            #expect(right["code"] == .int(7) && right["a"] == .int(3) && right["b"] == .string("text"))
            #expect(try context.fetch(EntityFetchRequest("Left")).map { $0["code"] } == [.string("seven")])
            #expect(try context.fetch(EntityFetchRequest("Thing")).map { $0.relatedObject("left")?.objectID } == [right.objectID])
        }
        #expect(try container.coordinator.store.verify() == [])
    }

    /// Catches: an exchange that is carried out again, because its entity has another name now.
    @Test(arguments: kinds) func `S165: exchanged names stay exchanged when their entity is renamed`(_ kind: StoreKind)
        async throws
    {
        func model(_ version: Int, _ entity: String) throws -> Model {
            func former(_ name: String) -> String? { version == 1 ? nil : name }
            func text(_ name: String, _ twin: String) -> PropertyDescription {
                .attribute(.init(name: name, type: .string, renamedFrom: former(twin)))
            }
            func many(_ name: String, _ twin: String) -> PropertyDescription {
                .relationship(.init(name: name, destination: "Other", cardinality: .toMany, renamedFrom: former(twin)))
            }
            return try Model(
                [
                    EntityDescription(
                        name: entity, properties: [text("a", "b"), text("b", "a"), many("x", "y"), many("y", "x")],
                        renamedFrom: entity == "Thing" ? nil : "Thing"),
                    EntityDescription(name: "Other", properties: [.attribute(.init(name: "mark", type: .string))]),
                ], version: .init(version))
        }
        let bed = try TestBed(kind)
        let first = try await bed.container(model: model(1, "Thing"))
        try await first.newBatchOperationContext().perform(andSave: .durable) { context in
            let thing = context.insert("Thing")
            (thing["a"], thing["b"]) = ("in a", "in b")
            thing.setRelatedObjects("x", to: [context.insert("Other")])
        }
        try await first.close()
        for (version, entity) in [(2, "Thing"), (3, "Item"), (4, "Item")] {
            try await bed.closed()
            let container = try await bed.container(model: model(version, entity))
            let values = try await container.read { context in
                try context.fetch(EntityFetchRequest(entity)).map {
                    [$0["a"], $0["b"], .int(Int64($0.relatedObjects("x").count)), .int(Int64($0.relatedObjects("y").count))]
                }
            }
            #expect(values == [["in b", "in a", 0, 1]], "version \(version)")
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
        }
    }

    /// A version of a model with two entities of the same properties, and what it exchanges.
    private struct Twins: Sendable, CustomStringConvertible {
        var entities: [String] = ["Left", "Right"]
        var renamedFrom: [String?] = [nil, nil]
        /// Whether each entity has been given the names of its properties exchanged.
        var isExchanged = [false, false]

        func model(_ version: Int) throws -> Model {
            func entity(_ number: Int) -> EntityDescription {
                func former(_ name: String) -> String? { isExchanged[number] ? name : nil }
                func text(_ name: String, _ twin: String) -> PropertyDescription {
                    .attribute(.init(name: name, type: .string, renamedFrom: former(twin)))
                }
                func many(_ name: String, _ twin: String) -> PropertyDescription {
                    .relationship(
                        .init(
                            name: name, destination: "Other", cardinality: .toMany, renamedFrom: former(twin),
                            inference: .refused,
                            isOrdered: true))
                }
                return EntityDescription(
                    name: entities[number], properties: [text("a", "b"), text("b", "a"), many("x", "y"), many("y", "x")],
                    renamedFrom: renamedFrom[number])
            }
            return try Model(
                [entity(0), entity(1), .init(name: "Other", properties: [.attribute(.init(name: "mark", type: .string))])],
                version: .init(version))
        }

        var description: String { "\(entities) were \(renamedFrom), exchanged: \(isExchanged)" }

        /// Returns the values of each entity.
        func values(_ container: PersistentContainer) async throws -> [String] {
            try await container.coordinator.finishMigration()
            #expect(try container.coordinator.store.verify() == [])
            return try await container.read { [entities] context in
                try entities.map { entity in
                    let object = try #require(try context.fetch(EntityFetchRequest(entity)).first)
                    let marks = ["x", "y"].map { name in object.relatedObjects(name).map { Self.text($0, "mark") }.joined() }
                    return "\(Self.text(object, "a")) \(Self.text(object, "b")) \(marks)"
                }
            }
        }

        static func text(_ object: ManagedObject, _ name: String) -> String {
            if case .string(let text) = object[name] { text } else { "-" }
        }
    }

    /// Catches: an exchange of one entity's properties that is carried out in the entity which has its name now, or a second time in the
    /// one that had it; and relationships or orders that stay where they were when their entity is renamed in the same version.
    @Test(arguments: kinds) func `S165: names are exchanged inside entities that are exchanged or renamed`(
        _ kind: StoreKind
    ) async throws {
        let plain = Twins()
        let entities = Twins(renamedFrom: ["Right", "Left"])
        func with(_ twins: Twins, _ isExchanged: [Bool]) -> Twins {
            Twins(entities: twins.entities, renamedFrom: twins.renamedFrom, isExchanged: isExchanged)
        }
        let renamed = Twins(entities: ["Item", "Right"], renamedFrom: ["Left", nil])
        let (left, right) = ("la lb [\"cba\", \"fed\"]", "ra rb [\"ih\", \"\"]")
        let (newLeft, newRight) = ("lb la [\"fed\", \"cba\"]", "rb ra [\"\", \"ih\"]")
        let cases: [(ways: [Twins], values: [String])] = [
            ([with(entities, [true, false])], [newRight, left]),
            ([with(entities, [true, true])], [newRight, newLeft]),
            ([with(plain, [true, false]), with(entities, [false, true])], [right, newLeft]),
            ([with(plain, [true, false]), with(entities, [true, true])], [newRight, newLeft]),
            ([with(plain, [true, false]), with(entities, [true, false])], [newRight, newLeft]),
            ([entities, with(entities, [true, false])], [newRight, left]),
            ([with(renamed, [true, false])], [newLeft, right]),
            ([with(plain, [true, false]), with(renamed, [true, true])], [newLeft, newRight]),
        ]
        for (ways, values) in cases {
            let bed = try TestBed(kind)
            let first = try await bed.container(model: plain.model(1))
            try await first.newBatchOperationContext().perform(andSave: .durable) { context in
                func others(_ marks: String) -> [ManagedObject] {
                    let made = marks.map { mark -> ManagedObject in
                        let other = context.insert("Other")
                        other["mark"] = .string(String(mark))
                        return other
                    }
                    return made.reversed()
                }
                for (entity, prefix, x, y) in [("Left", "l", "abc", "def"), ("Right", "r", "hi", "")] {
                    let object = context.insert(entity)
                    (object["a"], object["b"]) = (.string(prefix + "a"), .string(prefix + "b"))
                    object.setRelatedObjects("x", to: others(x))
                    object.setRelatedObjects("y", to: others(y))
                }
            }
            try await first.close()
            // The last version is opened again under a higher number, which must exchange nothing.
            for (step, twins) in (ways + ways.suffix(1)).enumerated() {
                try await bed.closed()
                let container = try await bed.container(model: twins.model(step + 2))
                if step >= ways.count - 1 { #expect(try await twins.values(container) == values, "\(ways), \(step)") }
                try await container.close()
            }
        }
    }

    /// Catches: orders that stay where they were, because no link has the names of relationships at its back end.
    @Test(arguments: kinds, [[true], [false, true]])
    func `S165: orders at the back end of links are exchanged in an entity that has a former name`(
        _ kind: StoreKind, _ steps: [Bool]
    ) async throws {
        func model(_ version: Int, isExchanged: Bool) throws -> Model {
            let song = version == 1 ? "Song" : "Track"
            let (first, second) = isExchanged ? ("tapes", "mixes") : ("mixes", "tapes")
            func many(_ name: String, _ destination: String, _ inverse: String, from former: String? = nil) -> PropertyDescription
            {
                .relationship(
                    .init(
                        name: name, destination: destination, inverse: inverse, cardinality: .toMany,
                        renamedFrom: isExchanged ? former : nil, isOrdered: destination == "Mix"))
            }
            return try Model(
                [
                    EntityDescription(
                        name: "Mix",
                        properties: [
                            .attribute(.init(name: "title", type: .string)), many("songs", song, first),
                            many("tunes", song, second),
                        ]),
                    EntityDescription(
                        name: song,
                        properties: [
                            many(first, "Mix", "songs", from: second), many(second, "Mix", "tunes", from: first),
                        ], renamedFrom: version == 1 ? nil : "Song"),
                ], version: .init(version))
        }
        let bed = try TestBed(kind)
        let first = try await bed.container(model: model(1, isExchanged: false))
        try await first.newBatchOperationContext().perform(andSave: .durable) { context in
            let song = context.insert("Song")
            for (name, titles) in [("mixes", "abc"), ("tapes", "def")] {
                let mixes = titles.map { title -> ManagedObject in
                    let mix = context.insert("Mix")
                    mix["title"] = .string(String(title))
                    return mix
                }
                song.setRelatedObjects(name, to: mixes.reversed())
            }
        }
        try await first.close()
        // The last version is opened again under a higher number, which must exchange nothing.
        for (step, isExchanged) in (steps + steps.suffix(1)).enumerated() {
            try await bed.closed()
            let container = try await bed.container(model: model(step + 2, isExchanged: isExchanged))
            let orders = try await container.read { context in
                let song = try #require(try context.fetch(EntityFetchRequest("Track")).first)
                return ["mixes", "tapes"].map { name in song.relatedObjects(name).map { Twins.text($0, "title") }.joined() }
            }
            #expect(orders == (isExchanged ? ["fed", "cba"] : ["cba", "fed"]), "step \(step) of \(steps)")
            #expect(try container.coordinator.store.verify() == [])
            try await container.close()
        }
    }

    /// Returns a model of books with two lists of chapters, which exchange their names after the first version.
    private static func twoLists(_ version: Int, ordered: Set<String>) throws -> Model {
        func relation(_ name: String, _ other: String, _ destination: String, inverse: String) -> PropertyDescription {
            .relationship(
                .init(
                    name: name, destination: destination, inverse: inverse, cardinality: destination == "Book" ? .toOne : .toMany,
                    renamedFrom: version > 1 ? other : nil, isOrdered: ordered.contains(name)))
        }
        let title = PropertyDescription.attribute(.init(name: "title", type: .string))
        let book = EntityDescription(
            name: "Book",
            properties: [
                title, relation("openings", "endings", "Chapter", inverse: "first"),
                relation("endings", "openings", "Chapter", inverse: "second"),
            ])
        let chapter = EntityDescription(
            name: "Chapter",
            properties: [
                title, relation("first", "second", "Book", inverse: "openings"),
                relation("second", "first", "Book", inverse: "endings"),
            ])
        return try Model([book, chapter], version: .init(version))
    }

    /// Catches: positions that are matched by their own names. If only one of the two lists has an order before or after the exchange, it
    /// then gets the positions of the other list.
    @Test(arguments: kinds)
    func `S165: exchanged lists keep their own positions if one of them has no order before or after`(_ kind: StoreKind)
        async throws
    {
        let (openings, endings): (Set<String>, Set<String>) = (["openings"], ["endings"])
        let both = openings.union(endings)
        // The ordered lists of two versions. The lists of the second one are those that the first had under the other name.
        let cases: [([Set<String>], [String])] = [
            ([both, openings], ["cb", "abc"]), ([both, endings], ["bc", "cab"]), ([openings, both], ["bc", "cab"]),
            ([endings, both], ["cb", "abc"]), ([openings, openings], ["bc", "abc"]),
        ]
        for (orders, expected) in cases {
            let bed = try TestBed(kind)
            let first = try await bed.container(model: Self.twoLists(1, ordered: orders[0]))
            try await first.coordinator.newBackgroundContext().perform(andSave: .durable) { context in
                let (a, b, c) = (context.makeChapter("a"), context.makeChapter("b"), context.makeChapter("c"))
                let book = context.insert("Book")
                book["title"] = "book"
                book.setRelatedObjects("openings", to: [c, a, b])
                book.setRelatedObjects("endings", to: [c, b])
            }
            try await first.close()
            // The third version exchanges nothing again.
            for version in 2...3 {
                try await bed.closed()
                let container = try await bed.container(model: Self.twoLists(version, ordered: orders[1]))
                let lists = try await container.read { context in
                    let book = try #require(try context.fetch(EntityFetchRequest("Book")).first)
                    return ["openings", "endings"].map { name in book.relatedObjects(name).map(\.title).joined() }
                }
                #expect(lists == expected, "version \(version) of \(orders)")
                #expect(try await container.coordinator.verify() == [])
                try await container.close()
            }
        }
    }

    /// The exchanges that each version of a model declares, from version 2: of the two entities, and of the attributes inside one.
    struct Exchanges: Sendable, CustomTestStringConvertible {
        var versions: [Set<String>]
        var left: [Value]
        var right: [Value]
        var testDescription: String { "\(versions.map { $0.sorted() })" }
    }

    /// Catches: an exchange of attributes that is recorded for the other entity, when two entities exchange their names.
    @Test(
        arguments: kinds,
        [
            Exchanges(versions: [["entities", "Left", "Right"]], left: ["rb", "ra"], right: ["lb", "la"]),
            Exchanges(versions: [["Left"], ["entities", "Right"]], left: ["ra", "rb"], right: ["lb", "la"]),
            Exchanges(versions: [["entities"], ["entities", "Right"]], left: ["ra", "rb"], right: ["lb", "la"]),
            Exchanges(versions: [["Left"], ["entities", "Left", "Right"]], left: ["rb", "ra"], right: ["lb", "la"]),
        ])
    func `S165: exchanges inside an entity follow it when it exchanges its own name`(
        _ kind: StoreKind, _ exchanges: Exchanges
    ) async throws {
        func model(_ version: Int) throws -> Model {
            let exchanged = version == 1 ? [] : exchanges.versions[min(version - 2, exchanges.versions.count - 1)]
            func entity(_ name: String, _ twin: String) -> EntityDescription {
                func text(_ attribute: String, _ former: String) -> PropertyDescription {
                    .attribute(.init(name: attribute, type: .string, renamedFrom: exchanged.contains(name) ? former : nil))
                }
                return EntityDescription(
                    name: name, properties: [text("a", "b"), text("b", "a")],
                    renamedFrom: exchanged.contains("entities") ? twin : nil)
            }
            return try Model([entity("Left", "Right"), entity("Right", "Left")], version: .init(version))
        }
        let last = exchanges.versions.count + 1
        // Through each version, directly, and through a plan.
        for way in [Array(2...last), [last], []] {
            let bed = try TestBed(kind)
            let first = try await bed.container(model: model(1))
            try await first.coordinator.insert(into: "Left", ["a", "b"], rows: [["la", "lb"]])
            try await first.coordinator.insert(into: "Right", ["a", "b"], rows: [["ra", "rb"]])
            try await first.close()
            if way.isEmpty {
                let plan = MigrationPlan(try (2...last).map { .lightweight(from: try model($0 - 1), to: try model($0)) })
                try await bed.closed()
                try await PersistentContainer(model: model(last), store: bed.description, migrationPlan: plan).close()
            }
            // A later version with the same former names changes nothing.
            for version in way + [last + 1] {
                try await bed.closed()
                let container = try await bed.container(model: model(version))
                if version >= last {
                    let values = try await container.read { context in
                        try ["Left", "Right"].map { name in
                            try context.fetch(EntityFetchRequest(name)).map { [$0["a"], $0["b"]] }
                        }
                    }
                    #expect(values == [[exchanges.left], [exchanges.right]], "version \(version) of \(way)")
                }
                #expect(try container.coordinator.store.verify() == [])
                try await container.close()
            }
        }
    }

    /// Catches: a dry run that leaves out a stage which only exchanges names.
    @Test(arguments: kinds) func `S202: a dry run lists a stage that only exchanges names`(_ kind: StoreKind) async throws {
        func model(_ version: Int) throws -> Model {
            func text(_ name: String, _ former: String) -> PropertyDescription {
                .attribute(.init(name: name, type: .string, isOptional: true, renamedFrom: version == 2 ? former : nil))
            }
            let more = version == 3 ? [text("c", "")] : []
            return try Model(
                [EntityDescription(name: "Thing", properties: [text("a", "b"), text("b", "a")] + more)], version: .init(version))
        }
        let bed = try TestBed(kind)
        let first = try await bed.container(model: model(1))
        try await first.coordinator.insert(into: "Thing", ["a"], rows: [["in a"]])
        try await first.close()
        try await bed.closed()
        let plan = try MigrationPlan([.lightweight(from: model(1), to: model(2)), .lightweight(from: model(2), to: model(3))])
        let changes = try await model(3).changes(opening: bed.description, migrationPlan: plan)
        #expect(changes.refusal == nil && changes.steps.count == 2, "\(changes)")
        let exchanges = changes.steps.first.map { "\($0.changes)" } ?? ""
        #expect(exchanges.contains("Thing.b") && exchanges.contains("Thing.a"), "\(changes)")
        let container = try await PersistentContainer(model: model(3), store: bed.description, migrationPlan: plan)
        #expect(try await container.read { try $0.fetch(EntityFetchRequest("Thing")).map { $0["b"] } } == ["in a"])
    }

    @Test(arguments: kinds) func `S165: exchanged names without a higher version are refused`(_ kind: StoreKind) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed, Self.model(1, exchanging: false))
        try await bed.closed()
        let error = await #expect(throws: StoreError.self) {
            _ = try await bed.container(model: Self.model(1, exchanging: true))
        }
        #expect(error?.code == .schemaMismatch)
        for words in ["Thing.a was b", "Left was Right", "higher version than 1.0.0"] {
            #expect(error?.message.contains(words) == true, "\(String(describing: error))")
        }
        #expect(try await Self.open(bed, Self.model(1, exchanging: false)) == Self.before)
    }

    @Test(arguments: kinds) func `S165: a file made by a model with exchanged names has nothing to exchange`(
        _ kind: StoreKind
    ) async throws {
        let bed = try TestBed(kind)
        try await Self.fill(bed, Self.model(2, exchanging: true))
        #expect(try await Self.open(bed, Self.model(2, exchanging: true)) == Self.before)
        #expect(try await Self.open(bed, Self.model(3, exchanging: true, extra: true)) == Self.before)
    }
}
