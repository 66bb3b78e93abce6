import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// One object that differs between two states.
struct Difference: Sendable {
    var kind: HistoryChange.Kind
    var entity: String
    var key: ObjectKey
    /// Whether ``entity`` is the name of a keyed collection.
    var isOfCollection = false
    /// The key of an entry of a keyed collection; nil for the collection itself, and for an object.
    var entryKey: ComparedKey?
    /// The collection and the key of a removed entry, as the history names them.
    private(set) var removedEntry: (collection: String, key: Data)?
    /// The properties that differ, of an object that both states have.
    var properties: [Property] = []
    /// Whether the object is deleted, and has attributes whose values the history does not keep.
    var hasUnknownAttribute = false

    struct Property: Sendable {
        var name: String
        /// The values before and after, of which the history keeps only some; nil for a relationship of which only the history is known.
        var values: (before: ComparedValue?, after: ComparedValue?)?

        /// The name and the values as JSON. If a value of a keyed entry has no form as JSON, both are the Base64 of their bytes.
        var json: JSON {
            guard let values else { return .string(name) }
            let both = [("before", values.before), ("after", values.after)]
            let areBytes = both.contains { $0.1?.isBytes == true }
            let unknown = both.filter { $0.1 == nil }.map { JSON.string($0.0) }
            return .object(
                [JSON.Member(name: "name", value: .string(areBytes ? CollectionText.valueData : name))]
                    + both.map { JSON.Member(name: $0, value: $1?.json(asBytes: areBytes) ?? .null) }
                    + (unknown.isEmpty ? [] : [JSON.Member(name: "unknown", value: .array(unknown))]))
        }
    }

    init(kind: HistoryChange.Kind, entity: String, key: ObjectKey, properties: [Property] = []) {
        self.kind = kind
        self.entity = entity
        self.key = key
        self.properties = properties
    }

    /// A difference of an entry of a keyed collection, or of the collection's types.
    init(kind: HistoryChange.Kind, collection: String, key: ComparedKey?, properties: [Property] = []) {
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
            column(name).map { Property(name: name, values: (.value(value, $0.type), .missing)) }
        }
        self.init(kind: change.kind, entity: change.entityName, key: change.objectID.key, properties: changed + kept)
        removedEntry = change.removedEntry
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
            let known = property.values.map { ($0.before.map { $0.text + " " } ?? "", $0.after.map { " " + $0.text } ?? "") }
            guard let known, known != ("", "") else { return property.name }
            return "\(property.name): \(known.0)→\(known.1)"
        }
        let sign = kind == .insert ? "+" : kind == .delete ? "-" : "~"
        let name = isOfCollection ? entryKey.map { "\(entity)[\($0.text)]" } ?? "collection \(entity)" : "\(entity) \(key)"
        return ("\(sign) \(name)" + (names.isEmpty ? "" : "  " + names.joined(separator: ", "))).withoutControls()
    }

    var json: JSON {
        var members = [
            JSON.Member(name: "kind", value: .string(kind.rawValue)),
            JSON.Member(name: isOfCollection ? "collection" : "entity", value: .string(entity)),
        ]
        if isOfCollection {
            if let entryKey { members.append(entryKey.member) }
        } else {
            members.append(JSON.Member(name: "key", value: .number(key.rawValue)))
        }
        if !properties.isEmpty {
            members.append(JSON.Member(name: "properties", value: .array(properties.map(\.json))))
        }
        return .object(members)
    }
}

/// A value of a difference: as text for people, and as JSON in the form of `query --json` and `export`.
enum ComparedValue: Sendable {
    /// Data of a column.
    case value(Value, ColumnType)
    /// The objects of a relationship, with a note about their order for people.
    case objects([ObjectKey], note: String = "")
    /// The value of an entry of a keyed collection.
    case entry(Data, StoredCollection?)
    /// The types of a keyed collection.
    case types(StoredCollection)
    case missing

    /// The value for people.
    var text: String {
        switch self {
        case .value(let value, let type): ValueText.shown(value, type)
        case .objects(let keys, let note): "\(keys.count) objects\(note)"
        case .entry(let bytes, let collection): CollectionText.shown(value: bytes, of: collection)
        case .types(let collection): "\(collection.valueType) under \(collection.keyType)"
        case .missing: "nil"
        }
    }

    /// Whether the value of an entry has no other form in JSON than its bytes.
    var isBytes: Bool {
        guard case .entry(let bytes, let collection) = self else { return false }
        return collection.flatMap { CollectionText.json(bytes, $0.valueType) } == nil
    }

    /// The value as JSON: keys for objects.
    /// - Parameter asBytes: Whether the value of an entry is written as the Base64 of its bytes.
    func json(asBytes: Bool) -> JSON {
        switch self {
        case .value(let value, let type): return ValueText.json(value, type)
        case .objects(let keys, _): return .array(keys.map { .number($0.rawValue) })
        case .entry(let bytes, let collection):
            let json = asBytes ? nil : collection.flatMap { CollectionText.json(bytes, $0.valueType) }
            return json ?? .string(bytes.base64EncodedString())
        case .types(let collection): return .object(CollectionText.members(collection))
        case .missing: return .null
        }
    }
}

/// The key of an entry of a keyed collection: as text for people, and as the member of JSON that `export` writes.
struct ComparedKey: Sendable {
    let text: String
    let member: JSON.Member

    init(_ key: Data, of collection: StoredCollection?, naming names: ObjectNames) {
        text = CollectionText.shown(key: key, of: collection, naming: names)
        member = CollectionText.member(key: key, of: collection, naming: names)
    }
}
