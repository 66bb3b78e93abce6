import Foundation
import ObjectGraph

/// Keys and values of keyed collections as text and JSON.
enum CollectionText {
    /// Returns a key for people: its parts, or its bytes as hexadecimal digits. The ids of objects are named.
    static func shown(key bytes: Data, of collection: StoredCollection?, naming names: ObjectNames) -> String {
        collection?.texts(ofKey: bytes, naming: names.text)?.joined(separator: ", ")
            ?? "0x" + bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// Returns the key whose parts are these words; nil if they are no key of the collection. The ids of objects may be named as
    /// ``shown(key:of:naming:)`` names them.
    static func key(_ words: [String], of collection: StoredCollection, naming names: ObjectNames) -> Data? {
        let types = keyTypes(collection)
        // An entity and a key as separate words.
        let words = types == [idType] && words.count == 2 ? [words.joined(separator: " ")] : words
        guard words.count == types.count else { return nil }
        return collection.key(zip(words, types).map { $1 == idType ? names.id($0)?.description ?? $0 : $0 })
    }

    private static let idType = ObjectID.keyTypeName

    /// Whether the keys of a collection are or contain ids of objects.
    static func hasIDs(_ collection: StoredCollection) -> Bool { keyTypes(collection).contains(idType) }

    /// The form of data in the keys of a collection, as the end of a message; empty if the keys contain no data.
    static func formOfData(in collection: StoredCollection) -> String {
        keyTypes(collection).contains("Data") ? " Write data as pairs of hexadecimal digits, such as 00ff." : ""
    }

    /// Returns the names of the types of the parts of a collection's keys.
    private static func keyTypes(_ collection: StoredCollection) -> [String] {
        let type = collection.keyType
        guard type.hasPrefix("("), type.hasSuffix(")") else { return [type] }
        return type.dropFirst().dropLast().split(separator: ", ").map(String.init)
    }

    /// Returns a value for people: data as its size.
    static func shown(value bytes: Data, of collection: StoredCollection?) -> String {
        collection?.text(ofValue: bytes) ?? "\(bytes.count) bytes"
    }

    // MARK: JSON

    static let (key, keyData, value, valueData) = ("key", "keyData", "value", "valueData")

    /// The types whose values are stored as bytes that may look like JSON by chance.
    private static let rawTypes: Set<String> = [
        "Data", "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64", "Float", "Double",
        "Bool", "Date", "UUID",
    ]

    /// Returns the members of an entry, from which ``entry(_:of:)`` makes the same bytes: the parts of the key as texts, and the value as
    /// a text or as JSON. Bytes that have no such form are Base64.
    /// - Parameter names: The names of objects whose ids are keys; nil to write the ids.
    static func members(
        _ entry: StoredCollection.Entry, of collection: StoredCollection, naming names: ObjectNames? = nil
    ) -> [JSON.Member] {
        [
            member(key: entry.key, of: collection, naming: names),
            json(entry.value, collection.valueType).map { JSON.Member(name: value, value: $0) }
                ?? JSON.Member(name: valueData, value: .string(entry.value.base64EncodedString())),
        ]
    }

    /// Returns the member of a key: its parts as texts, or the Base64 of its bytes if these have no such form.
    static func member(key bytes: Data, of collection: StoredCollection?, naming names: ObjectNames? = nil) -> JSON.Member {
        guard let collection, let texts = collection.texts(ofKey: bytes), collection.key(texts) == bytes else {
            return JSON.Member(name: keyData, value: .string(bytes.base64EncodedString()))
        }
        let named = names.flatMap { collection.texts(ofKey: bytes, naming: $0.text) } ?? texts
        return JSON.Member(name: key, value: .array(named.map { .string($0) }))
    }

    /// Returns a value as a text or as JSON; nil for bytes that have no such form.
    static func json(_ bytes: Data, _ type: String) -> JSON? {
        guard !rawTypes.contains(type) else { return nil }
        if type == "String" { return String(validating: bytes, as: UTF8.self).map { .string($0) } }
        guard let json = try? JSONParser.parse(bytes), Data(json.text.utf8) == bytes else { return nil }
        return json
    }

    /// Returns the entry that a JSON object describes; nil if it has another form.
    /// - Parameter names: The names of objects that keys may have instead of ids.
    static func entry(
        _ json: JSON, of collection: StoredCollection, naming names: ObjectNames
    ) -> StoredCollection.Entry? {
        let key: Data?
        switch (json[Self.key], json[keyData]) {
        case (.array(let parts)?, nil):
            let texts = parts.compactMap { if case .string(let text) = $0 { text } else { nil } }
            key = texts.count == parts.count ? Self.key(texts, of: collection, naming: names) : nil
        case (nil, .string(let text)?): key = Data(base64Encoded: text)
        default: key = nil
        }
        let value: Data?
        switch (json[Self.value], json[valueData]) {
        case (let json?, nil):
            if collection.valueType == "String" {
                if case .string(let text) = json { value = Data(text.utf8) } else { value = nil }
            } else {
                value = rawTypes.contains(collection.valueType) ? nil : Data(json.text.utf8)
            }
        case (nil, .string(let text)?): value = Data(base64Encoded: text)
        default: value = nil
        }
        guard let key, let value else { return nil }
        return StoredCollection.Entry(key: key, value: value)
    }

    /// The types of a collection as members of a JSON object.
    static func members(_ collection: StoredCollection) -> [JSON.Member] {
        [
            JSON.Member(name: "keys", value: .string(collection.keyType)),
            JSON.Member(name: "values", value: .string(collection.valueType)),
        ]
    }
}
