import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// The model of a ``Library`` in three versions: the second is reached by a lightweight migration, the third by a staged one.
enum LibraryModel: Int, CaseIterable {
    case first = 1
    /// `text` is `title`. A new attribute has a default, and it and the group have an index.
    case renamed = 2
    /// As `renamed`; a custom stage has computed `length` from the title.
    case staged = 3

    /// The number of the counter that every writer increments, in stores that have one.
    static let sharedWriter = 999

    var textName: String { self == .first ? "text" : "title" }

    func model() throws -> Model {
        var attributes: [AttributeDescription] = [.init(name: "number", type: .int64, index: .unique)]
        switch self {
        case .first: attributes.append(.init(name: "text", type: .string))
        case .renamed, .staged:
            attributes.append(.init(name: "title", type: .string, index: .indexed, renamedFrom: "text"))
            attributes.append(.init(name: "length", type: .int64, index: .indexed, defaultValue: .int(7)))
        }
        attributes.append(.init(name: "payload", type: .data, isOptional: true))
        let item = EntityDescription(
            name: "Item",
            properties: attributes.map { .attribute($0) } + [
                .relationship(.init(name: "group", destination: "Group", inverse: "items", cardinality: .toOne)),
                .relationship(.init(name: "tags", destination: "Group", inverse: "tagged", cardinality: .toMany)),
            ])
        let group = EntityDescription(
            name: "Group",
            properties: [
                .attribute(.init(name: "number", type: .int64, index: .unique)),
                .relationship(.init(name: "items", destination: "Item", inverse: "group", cardinality: .toMany)),
                .relationship(.init(name: "tagged", destination: "Item", inverse: "tags", cardinality: .toMany)),
            ])
        let writer = EntityDescription(
            name: "Writer",
            properties: [
                .attribute(.init(name: "number", type: .int64, index: .unique)),
                .attribute(.init(name: "saves", type: .int64)),
            ])
        return try Model([item, group, writer], version: SchemaVersion(rawValue))
    }

    /// Returns the plan that migrates a file of the first version to this version.
    func plan() throws -> MigrationPlan? {
        guard self == .staged else { return nil }
        return MigrationPlan([
            .custom(
                from: try LibraryModel.first.model(), to: try model(),
                didMigrate: { context in
                    for item in try context.fetch(EntityFetchRequest("Item")) {
                        guard case .string(let title) = item["title"] else { continue }
                        item["length"] = .int(Int64(title.utf8.count))
                    }
                })
        ])
    }

    /// Returns the value of `length`: computed in the staged version, otherwise the default.
    func length(of text: String) -> Int64 { self == .staged ? Int64(text.utf8.count) : 7 }
}

extension ManagedObjectContext {
    private func one(_ entity: String, _ number: Int) throws -> ManagedObject? {
        try fetch(EntityFetchRequest(entity, matching: .equal("number", .int(Int64(number))))).first
    }

    /// Makes the changes of a step, which are already part of `library`.
    func apply(_ step: Library.Step, of library: Library, as version: LibraryModel) throws {
        if library.saves == 1 {
            insert("Writer")["number"] = .int(Int64(library.writer))
            for group in 0..<Library.groups { insert("Group")["number"] = .int(Int64(library.global(group))) }
        }
        guard let writer = try one("Writer", library.writer) else {
            throw CrashRunError("writer \(library.writer) has lost its counter before save \(library.saves)")
        }
        writer["saves"] = .int(Int64(library.saves))
        if let shared = try one("Writer", LibraryModel.sharedWriter), case .int(let sum) = shared["saves"] {
            shared["saves"] = .int(sum + 1)
        }
        for (number, item) in step.inserted {
            let object = insert("Item")
            object["number"] = .int(Int64(library.global(number)))
            try fill(object, item, library, version)
        }
        for (number, item) in step.updated {
            guard let object = try one("Item", library.global(number)) else {
                throw CrashRunError("item \(number) of writer \(library.writer) is not found by its number")
            }
            try fill(object, item, library, version)
        }
        for number in step.deleted {
            guard let object = try one("Item", library.global(number)) else {
                throw CrashRunError("item \(number) of writer \(library.writer) is not found by its number")
            }
            delete(object)
        }
    }

    private func fill(_ object: ManagedObject, _ item: Library.Item, _ library: Library, _ version: LibraryModel) throws {
        object[version.textName] = .string(item.text)
        if version != .first { object["length"] = .int(version.length(of: item.text)) }
        object["payload"] = item.payload.map { .data($0) } ?? .null
        object.setRelatedObject("group", to: try item.group.flatMap { try one("Group", library.global($0)) })
        object.setRelatedObjects("tags", to: try item.tags.sorted().compactMap { try one("Group", library.global($0)) })
    }

    /// Returns the number of saves according to a writer's counter.
    func saves(of writer: Int) throws -> Int {
        guard case .int(let saves)? = try one("Writer", writer)?["saves"] else { return 0 }
        return Int(saves)
    }

    /// Returns the differences between a writer's objects in the context and the expected objects, in words.
    func differences(from library: Library, as version: LibraryModel) throws -> [String] {
        var found: [Int: ManagedObject] = [:]
        for object in try fetch(EntityFetchRequest("Item")) {
            guard case .int(let number) = object["number"], Int(number) / 1_000_000 == library.writer else { continue }
            found[Int(number) % 1_000_000] = object
        }
        var differences: [String] = []
        for number in Set(found.keys).symmetricDifference(library.items.keys).sorted() {
            differences.append("item \(number) is \(found[number] == nil ? "missing" : "there")")
        }
        for (number, item) in library.items {
            guard let object = found[number] else { continue }
            if object[version.textName] != .string(item.text) { differences.append("text of item \(number)") }
            if version != .first, object["length"] != .int(version.length(of: item.text)) {
                differences.append("length of item \(number): \(object["length"])")
            }
            if object["payload"] != (item.payload.map { .data($0) } ?? .null) { differences.append("payload of item \(number)") }
            if self.number(of: object.relatedObject("group")) != item.group { differences.append("group of item \(number)") }
            let tags = Set(object.relatedObjects("tags").compactMap { self.number(of: $0) })
            if tags != item.tags { differences.append("tags of item \(number): \(tags.sorted())") }
            if try one("Item", library.global(number)) !== object { differences.append("item \(number) by its number") }
        }
        return differences
    }

    private func number(of group: ManagedObject?) -> Int? {
        guard case .int(let number)? = group?["number"] else { return nil }
        return Int(number) % 1_000_000
    }
}
