extension ChangeSet: CustomStringConvertible {
    /// The number of the save, its author, and the changed objects of each entity: `save 7: entity 2: inserted 12, 13, updated 4`.
    ///
    /// A change set knows entities by number only. Of many keys, the first are shown.
    public var description: String { description(naming: { "entity \($0)" }) }

    /// Returns the description with the names of entities.
    package func description(naming name: (EntityIndex) -> String) -> String {
        var parts = entities.map { "\(name($0.entity)): \($0.keyText)" }
        parts += links.map(\.description)
        let author = author.isEmpty ? "" : " by \(author)"
        let title = generation == 0 ? "unsaved changes\(author)" : "save \(generation)\(author)"
        return "\(title): " + (parts.isEmpty ? "no changes" : parts.joined(separator: "; "))
    }
}

extension ChangeSet.EntityChange: CustomStringConvertible {
    /// The entity's position and the keys of its changed objects. Of many keys, the first are shown.
    public var description: String { "entity \(entity): \(keyText)" }

    fileprivate var keyText: String {
        let kinds = [("inserted", insertedKeys), ("updated", updatedKeys), ("deleted", deletedKeys)]
        let texts = kinds.filter { !$0.1.isEmpty }.map { "\($0.0) \(KeyText.list($0.1))" }
        return texts.isEmpty ? "no changes" : texts.joined(separator: ", ")
    }
}

extension ChangeSet.LinkChange: CustomStringConvertible {
    /// The link's number and the keys of the objects whose partners changed. Of many keys, the first are shown.
    public var description: String {
        "link \(link): partners of \(KeyText.list(sources)) at the source, \(KeyText.list(destinations)) at the destination"
    }
}

extension Tombstone: CustomStringConvertible {
    /// The entity's position, the key and the preserved values.
    public var description: String {
        "entity \(entity), key \(key), deleted: " + values.map { "column \($0.column): \($0.value)" }.joined(separator: ", ")
    }
}

/// Keys as text.
package enum KeyText {
    private static let shown = 8

    /// Returns the keys, separated by commas. Of more than 8 keys, the first are followed by their total number.
    package static func list(_ keys: some Collection<some CustomStringConvertible>) -> String {
        let text = keys.prefix(shown).map { "\($0)" }.joined(separator: ", ")
        return keys.count <= shown ? text.isEmpty ? "none" : text : "\(text), … (\(keys.count) objects)"
    }
}
