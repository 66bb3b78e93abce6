import Foundation
import Strata
import Testing

/// A model with every kind of rule on every kind of property, and a hook.
@Model final class Pupil {
    enum Level: Int, AttributeValue { case first = 1, second, third, fourth }
    enum Mood: String { case calm, wild }

    @Attribute(.length(1...80)) var name: String = "Ada"
    @Attribute(.required, .pattern(/[a-z]+(?:\.[a-z]+)*@school\/[#"]?(?<x>[0-9]+)/)) var mail: String?
    @Attribute(.pattern("[A-Z]\\d")) var seat: String = "A1"
    @Attribute(.range(0...5)) var grade: Double = 1
    @Attribute(.range(0...0.1)) var share: Float = 0.1
    @Attribute(.range(..<10)) var count: UInt64 = 1
    @Attribute(.range(0.5...10)) var fee: Decimal = 1
    @Attribute(.range(Date(timeIntervalSinceReferenceDate: 0)...)) var joined: Date = Date(timeIntervalSinceReferenceDate: 0)
    @Attribute(.required) var born: Date?
    @Attribute(.length(...2)) var tags: [String] = []
    @Attribute(.length(1...2)) var marks: Set<Int>?
    @Attribute(.length(2..<4)) var photo: Data?
    @Attribute(.range(1...3)) var level: Level = .first
    @Attribute(.length(4...4)) var mood: Mood? = .calm
    @Relationship(.required, inverse: \Room.pupils) var room: Room?

    init() {
        mail = "ada@school/1"
        born = .distantPast
    }
}

@Model final class Room {
    var name = "1a"
    @Relationship(deleteRule: .nullify, count: 1...2) var pupils: [Pupil] = []
    @Relationship(count: ...1) var doors: Set<Door> = []
    init() {}
}

@Model final class Door {
    var number = 1
    init() {}
}

/// The example in the documentation of rules. The architecture tests compare both.
enum Singles {
    // Sources/Strata/PropertyOptions.swift
    @Model final class Single {
        @Attribute(.unique, .pattern(/[A-Z]{2}[A-Z0-9]{3}[0-9]{7}/)) var isrc: String
        @Attribute(.length(1...80)) var title: String
        @Attribute(.required) var recorded: Date?
        @Attribute(.indexed, .range(0...)) var playCount = 0
        @Relationship(.required) var label: Label?
        @Relationship(count: 1...20) var artists: [Singer]
    }
    // end

    @Model final class Label {
        var name: String
    }

    @Model final class Singer {
        var name: String
    }
}

extension Pupil: ManagedObjectLifecycle {
    struct Unlucky: Error, Equatable {}

    func validateForInsert() throws { if name.count == 13 { throw Unlucky() } }
    func validateForUpdate() throws {
        if name == "changed by hook" { grade = 6 }
        if name == "joined by hook" {
            let friend = Pupil()
            friend.name = ""
            friend.room = room
        }
        if name.count == 13 { throw Unlucky() }
    }
}

@Suite struct RuleModelTests {
    private static func container() async throws -> PersistentContainer {
        try await PersistentContainer(for: Pupil.self, Room.self, Door.self, store: .memory)
    }

    /// Changes that break rules, and the messages.
    private static let changes: [(@Sendable (Pupil) -> Void, [String])] = [
        ({ $0.name = "" }, ["name must have 1 to 80 characters, has 0"]),
        ({ $0.name = String(repeating: "é", count: 81) }, ["name must have 1 to 80 characters, has 81"]),
        ({ $0.name = String(repeating: "🎸", count: 80) }, []),
        ({ $0.mail = nil }, ["mail must have a value"]),
        ({ $0.mail = "ada.b@school/12" }, []),
        ({ $0.mail = "ada@school/\"7" }, []),
        ({ $0.mail = "x ada@school/1" }, ["mail must match [a-z]+(?:\\.[a-z]+)*@school\\/[#\"]?(?<x>[0-9]+)"]),
        ({ $0.seat = "B12" }, ["seat must match [A-Z]\\d"]),
        ({ $0.grade = 5.01 }, ["grade must be from 0 to 5, is 5.01"]),
        ({ $0.grade = -.infinity }, ["grade must be from 0 to 5, is -inf"]),
        ({ $0.share = 0.2 }, ["share must be from 0.0 to 0.10000000149011612, is 0.20000000298023224"]),
        ({ $0.count = .max }, ["count must be less than 10, is 18446744073709551615"]),
        ({ $0.count = 9 }, []),
        ({ $0.fee = 0 }, ["fee must be from 0.5 to 10, is 0"]),
        ({ $0.fee = Decimal(string: "10.01") ?? 0 }, ["fee must be from 0.5 to 10, is 10.01"]),
        ({ $0.fee = .nan }, ["fee must be from 0.5 to 10, is NaN"]),
        ({ $0.fee = 10 }, []),
        (
            { $0.joined = Date(timeIntervalSinceReferenceDate: -1) },
            ["joined must be at least 2001-01-01T00:00:00Z, is 2000-12-31T23:59:59Z"]
        ),
        ({ $0.born = nil }, ["born must have a value"]),
        ({ $0.tags = ["a", "b,[\"\\"] }, []),
        ({ $0.tags = ["a", "b,[\"\\", ""] }, ["tags must have at most 2 elements, has 3"]),
        ({ $0.marks = [] }, ["marks must have 1 to 2 elements, has 0"]),
        ({ $0.marks = [1, 2, 3] }, ["marks must have 1 to 2 elements, has 3"]),
        ({ $0.marks = [1] }, []),
        ({ $0.photo = Data([1]) }, ["photo must have 2 to 3 bytes, has 1"]),
        ({ $0.photo = Data([1, 2, 3, 4]) }, ["photo must have 2 to 3 bytes, has 4"]),
        ({ $0.level = .fourth }, ["level must be from 1 to 3, is 4"]),
        ({ $0.mood = nil }, []),
    ]

    @Test func `S061: attributes of each type follow their rules, before and after the insertion`() async throws {
        let container = try await Self.container()
        let worker = container.coordinator.newBackgroundContext()
        for (change, expected) in Self.changes {
            try await worker.perform { context in
                func messages(_ pupil: Pupil) -> [String] {
                    pupil.validationErrors().map { ($0 as? RuleViolation)?.message ?? "\($0)" }
                }
                let pupil = Pupil()
                #expect(messages(pupil) == [])
                change(pupil)
                #expect(messages(pupil) == expected)
                let room = Room()
                context.insert(room)
                pupil.room = room
                #expect(messages(pupil) == expected)
                if expected.isEmpty {
                    try pupil.validate(\.name)
                } else {
                    #expect(throws: RuleViolation.self) {
                        for name in Pupil.columnsByKeyPath.values { try pupil.managedObject.validate(name) }
                    }
                }
            }
            var found: [String] = []
            do { try await worker.save() } catch SaveError.validation(let errors) { found = errors.ruleViolations.map(\.message) }
            #expect(found == expected)
            await worker.perform { $0.rollback() }
        }
        try await container.close()
    }

    @Test func `S061: broken rules and errors of hooks are in one error`() async throws {
        let container = try await Self.container()
        let worker = container.coordinator.newBackgroundContext()
        let (pupil, room) = await worker.perform { context in
            let pupil = Pupil()
            pupil.name = "thirteen long"
            pupil.grade = 6
            context.insert(pupil)
            let room = Room()
            room.doors = [Door(), Door()]
            context.insert(room)
            let own = pupil.validationErrors()
            #expect(own.count == 3 && own.last is Pupil.Unlucky)
            return (pupil.id, room.id)
        }
        let error = await #expect(throws: SaveError.self) { try await worker.save() }
        guard case .validation(let errors)? = error else { return }
        #expect(errors.totalCount == 5)
        #expect(
            errors.filter { $0.0 == pupil }.map { ($0.1 as? RuleViolation)?.property ?? "hook" } == ["grade", "room", "hook"])
        #expect(errors.filter { $0.0 == room }.map { ($0.1 as? RuleViolation)?.property ?? "hook" } == ["pupils", "doors"])
        #expect(errors.ruleViolations.first?.value == .double(6))
        #expect(errors.ruleViolations.first?.rule == .range(0...5))
        #expect(errors.ruleViolations.first?.entity == "Pupil")
        try await container.close()
    }

    @Test func `S061: what a hook writes is validated too`() async throws {
        let container = try await Self.container()
        let worker = container.coordinator.newBackgroundContext()
        await worker.perform { context in
            let pupil = Pupil()
            context.insert(pupil)
            let room = Room()
            context.insert(room)
            pupil.room = room
        }
        try await worker.save()
        for (name, expected) in [
            ("changed by hook", "grade must be from 0 to 5, is 6.0"),
            ("joined by hook", "name must have 1 to 80 characters, has 0"),
        ] {
            try await worker.perform { try $0.fetch(FetchRequest<Pupil>())[0].name = name }
            let error = await #expect(throws: SaveError.self) { try await worker.save() }
            guard case .validation(let errors)? = error else { return }
            #expect(errors.ruleViolations.map(\.message) == [expected])
            await worker.perform { $0.rollback() }
        }
        try await container.close()
    }

    @Test func `S061, S139: a typed batch follows the rules`() async throws {
        let container = try await Self.container()
        let worker = container.coordinator.newBackgroundContext()
        await worker.perform { context in
            let room = Room()
            context.insert(room)
            for _ in 0..<2 {
                let pupil = Pupil()
                context.insert(pupil)
                pupil.room = room
            }
        }
        try await worker.save()
        let error = await #expect(throws: SaveError.self) {
            try await container.coordinator.batchUpdate(
                FetchRequest<Pupil>(), .set(\.name, to: ""), .set(\.mail, to: nil), .set(\.room, to: nil))
        }
        guard case .validation(let errors)? = error else { return }
        #expect(errors.ruleViolations.count { $0.entity == "Pupil" } == 6)
        #expect(errors.ruleViolations.count { $0.property == "pupils" } == 1)

        try await container.close()
    }

    @Test func `S061: the example of the documentation is a model`() throws {
        let model = try Model(Singles.Single.self, Singles.Label.self, Singles.Singer.self)
        let single = try #require(model.entity(named: "Single"))
        #expect(single.attributes.map(\.rules.count) == [1, 1, 1, 1])
        #expect(single.attribute(named: "isrc")?.rules == [.pattern("[A-Z]{2}[A-Z0-9]{3}[0-9]{7}")])
        #expect(single.relationships.map(\.rules) == [[.required], [.count(1...20)]])
    }

    @Test func `S061: entities list the rules of their properties`() throws {
        let model = try Model(Pupil.self, Room.self, Door.self)
        let pupil = try #require(model.entity(for: Pupil.self))
        #expect(pupil.attribute(named: "name")?.rules == [.length(1...80)])
        #expect(pupil.attribute(named: "mail")?.rules.map(\.description).first == ".required")
        #expect(pupil.relationship(named: "room")?.rules == [.required])
        #expect(model.entity(for: Room.self)?.relationship(named: "pupils")?.rules == [.count(1...2)])
        #expect("\(PropertyRule.range(..<10))" == ".range(..<10)")
        #expect("\(PropertyRule.length(1...))" == ".length(1...)")
    }
}
