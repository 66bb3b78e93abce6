import ArgumentParser
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata diff`: the objects that differ between two files, or between two saves of one file.
struct DiffCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "diff", abstract: "Lists the objects that differ between two stores, or between two saves of one.",
        discussion: """
            Two stores are compared object by object: those of one entity with one key. So it shows what has changed since a backup. Two saves \
            are compared by the history, with --from and --to. It keeps no former values of updated properties. Of deleted objects, it keeps \
            the values of attributes that the model marks .preserveValueOnDeletion. Unknown values are left out, and are null in JSON. The \
            status is 1 if there are differences.
            """)

    @Argument(help: "The store, which is the older one of two.", completion: .file())
    var file: String

    @Argument(help: "The other store.", completion: .file())
    var other: String?

    @Option(help: ArgumentHelp("Compare the state after this save of the store.", valueName: "save"))
    var from: UInt64?

    @Option(help: ArgumentHelp("… with the state after this save; the newest one if it is left out.", valueName: "save"))
    var to: UInt64?

    @OptionGroup var output: OutputOptions

    mutating func validate() throws {
        guard (other == nil) != (from == nil) else { throw ValidationError("name a second store, or a save with --from") }
        if to != nil, from == nil { throw ValidationError("--to needs --from") }
        if let from, let to, to < from { throw ValidationError("--to is a save after --from") }
    }

    mutating func run() async throws {
        let differences: [Difference]
        if let other {
            differences = try await StoreComparison(file, other).differences()
        } else {
            differences = try await Self.historyDifferences(file, from: from ?? 0, to: to)
        }
        if output.json {
            try Console.print("[" + differences.map(\.json.text).joined(separator: ",\n") + "]")
        } else {
            for difference in differences { try Console.print(difference.text) }
            if other == nil { for line in Self.unknownValues(in: differences) { try Console.print(line) } }
            if differences.isEmpty { try Console.print("no differences") }
        }
        if !differences.isEmpty { throw ToolError.printedFindings }
    }

    /// Returns a line per kind of values that the history does not keep, with the way to see or keep them.
    private static func unknownValues(in differences: [Difference]) -> [String] {
        var lines: [String] = []
        let updated = differences.flatMap(\.properties).compactMap(\.values)
        if updated.contains(where: { $0.before == nil }) {
            lines.append(
                "The history does not keep the former values of updated properties. To see them, compare the store with a backup of that "
                    + "time.")
        }
        if updated.contains(where: { $0.after == nil }) {
            lines.append("The history does not keep values that later saves have changed. These are left out, too.")
        }
        if differences.contains(where: { $0.kind == .delete && $0.hasUnknownAttribute }) {
            lines.append(
                "The history keeps the values of a deleted object only for attributes that the model marks .preserveValueOnDeletion. To "
                    + "keep more of them from now on, mark their attributes.")
        }
        return lines
    }

    /// Returns what the saves between two positions have changed altogether.
    private static func historyDifferences(_ file: String, from: UInt64, to: UInt64?) async throws -> [Difference] {
        try await OpenedStore.with(file) { store in
            let coordinator = store.container.coordinator
            let newest = coordinator.currentHistoryToken.generation
            guard from <= newest, to.map({ $0 <= newest }) != false else {
                throw ToolError.wrongInput(
                    "\(file) has no save \(max(from, to ?? 0)); the newest is \(newest). See `strata history`")
            }
            let saves = try await coordinator.history(HistoryRequest(after: HistoryCommand.token(from, in: coordinator)))
            let model = store.model
            var found: [ObjectID: Difference] = [:]
            // The properties that saves after the second state have changed. Of the others, the newest value is the one of that state.
            var later: [ObjectID: Set<String>] = [:]
            for save in saves {
                for change in save.changes {
                    guard to.map({ save.id <= $0 }) != false else {
                        later[change.objectID, default: []].formUnion(change.updatedProperties)
                        continue
                    }
                    let before = found.removeValue(forKey: change.objectID)
                    found[change.objectID] = Difference(change, model).after(before)
                }
            }
            let (differences, changed, names) = (found, later, store.names)
            return try await store.read { context in
                let known = CurrentValues(context: context, names: names, changed: changed)
                return try differences.sorted { ($0.key.entity, $0.key.key) < ($1.key.entity, $1.key.key) }.map {
                    try known.completed($0.value, of: $0.key)
                }
            }
        }
    }
}

/// One object that differs between two states.
struct Difference: Sendable {
    var kind: HistoryChange.Kind
    var entity: String
    var key: ObjectKey
    /// Whether ``entity`` is the name of a keyed collection.
    var isOfCollection = false
    /// The key of an entry of a keyed collection; nil for the collection itself, and for an object.
    var entryKey: String?
    /// The properties that differ, of an object that both states have.
    var properties: [Property] = []
    /// Whether the object is deleted, and has attributes whose values the history does not keep.
    var hasUnknownAttribute = false

    struct Property: Sendable {
        var name: String
        /// The values before and after, of which the history keeps only some; nil for a relationship of which only the history is known.
        var values: (before: String?, after: String?)?
    }

    init(kind: HistoryChange.Kind, entity: String, key: ObjectKey, properties: [Property] = []) {
        self.kind = kind
        self.entity = entity
        self.key = key
        self.properties = properties
    }

    /// A difference of an entry of a keyed collection, or of the collection's types.
    init(kind: HistoryChange.Kind, collection: String, key: String?, properties: [Property] = []) {
        self.init(kind: kind, entity: collection, key: 0, properties: properties)
        isOfCollection = true
        entryKey = key
    }

    init(_ change: HistoryChange, _ model: Model) {
        let entity = model.wholeEntity(change.entityName)
        func column(_ name: String) -> ColumnSchema? { entity?.column(named: name).flatMap { entity?.columns[$0] } }
        let changed = change.updatedProperties.sorted().map { name in
            Property(name: name, values: entity == nil || column(name) != nil ? (nil, nil) : nil)
        }
        // The values that the model preserves for the history.
        let kept = change.tombstone.sorted { $0.key < $1.key }.compactMap { name, value in
            column(name).map { Property(name: name, values: (ValueText.shown(value, $0.type), "nil")) }
        }
        self.init(kind: change.kind, entity: change.entityName, key: change.objectID.key, properties: changed + kept)
        hasUnknownAttribute = change.kind == .delete && entity.map { kept.count < $0.attributes.count } ?? false
    }

    /// Returns the difference together with an earlier one of the same object; nil if the object exists neither before nor after.
    func after(_ before: Difference?) -> Difference? {
        guard let before else { return self }
        switch (before.kind, kind) {
        case (.insert, .delete): return nil
        case (.insert, _): return before
        case (.update, .update):
            let known = Set(before.properties.map(\.name))
            var both = before
            both.properties += properties.filter { !known.contains($0.name) }
            both.properties.sort { $0.name < $1.name }
            return both
        case (.delete, .insert), (.delete, .update):
            return Difference(kind: .update, entity: entity, key: key, properties: properties)
        default: return self
        }
    }

    var text: String {
        let names = properties.map { property in
            let known = property.values.map { ($0.before.map { $0 + " " } ?? "", $0.after.map { " " + $0 } ?? "") }
            guard let known, known != ("", "") else { return property.name }
            return "\(property.name): \(known.0)→\(known.1)"
        }
        let sign = kind == .insert ? "+" : kind == .delete ? "-" : "~"
        let name = isOfCollection ? entryKey.map { "\(entity)[\($0)]" } ?? "collection \(entity)" : "\(entity) \(key)"
        return ("\(sign) \(name)" + (names.isEmpty ? "" : "  " + names.joined(separator: ", "))).withoutControls()
    }

    var json: JSON {
        var members = [
            JSON.Member(name: "kind", value: .string(kind.rawValue)),
            JSON.Member(name: isOfCollection ? "collection" : "entity", value: .string(entity)),
        ]
        if isOfCollection {
            if let entryKey { members.append(JSON.Member(name: "key", value: .string(entryKey))) }
        } else {
            members.append(JSON.Member(name: "key", value: .number(key)))
        }
        if !properties.isEmpty {
            let list = properties.map { property -> JSON in
                guard let values = property.values else { return .string(property.name) }
                let both = [("before", values.before), ("after", values.after)]
                let unknown = both.filter { $0.1 == nil }.map { JSON.string($0.0) }
                return .object(
                    [JSON.Member(name: "name", value: .string(property.name))]
                        + both.map { JSON.Member(name: $0, value: $1.map { .string($0) } ?? .null) }
                        + (unknown.isEmpty ? [] : [JSON.Member(name: "unknown", value: .array(unknown))]))
            }
            members.append(JSON.Member(name: "properties", value: .array(list)))
        }
        return .object(members)
    }
}

/// The newest values, which are those of an earlier state unless a later save has changed them.
private struct CurrentValues {
    let context: ManagedObjectContext
    let names: ObjectNames
    /// The properties that saves after the state have changed.
    let changed: [ObjectID: Set<String>]

    /// Returns a difference with the values after it, as far as they are known, and with the name of its keyed entry.
    func completed(_ difference: Difference, of id: ObjectID) throws -> Difference {
        guard let entity = names.model.wholeEntity(difference.entity) else { return try entry(difference, of: id) }
        guard difference.kind == .update, let object = try? context.existingObject(with: id) else { return difference }
        var difference = difference
        for (place, property) in difference.properties.enumerated() {
            guard property.values != nil, let column = entity.column(named: property.name),
                changed[id]?.contains(property.name) != true
            else { continue }
            difference.properties[place].values?.after = ValueText.shown(object[property.name], entity.columns[column].type)
        }
        return difference
    }

    /// Returns the difference of an object that the model does not have: a record of the keyed collections.
    private func entry(_ difference: Difference, of id: ObjectID) throws -> Difference {
        switch try context.storedRecord(of: id) {
        case .entry(let name, let entry)?:
            let collection = try context.storedCollections().first { $0.name == name }
            let isNewest = changed[id] == nil
            let after = isNewest ? CollectionText.shown(value: entry.value, of: collection) : nil
            let value = Difference.Property(name: "value", values: (nil, after))
            return Difference(
                kind: difference.kind, collection: name,
                key: CollectionText.shown(key: entry.key, of: collection, naming: names),
                properties: difference.kind == .update ? [value] : [])
        case .collection(let collection)?: return Difference(kind: difference.kind, collection: collection.name, key: nil)
        case nil:
            // The key is gone with the entry.
            var difference = difference
            difference.entity = "entry of a keyed collection"
            difference.properties = []
            return difference
        }
    }
}
