import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// Steps whose result follows from the committed state before, if no other process saves: batch updates, imports and orders.
extension IntegrityRun {
    /// A committed track. Tracks are equal if their values are.
    private struct TrackCopy: Sendable, Comparable, CustomStringConvertible {
        var title: String
        var code: String?
        var album: ObjectKey?

        var description: String { "\(title) \(code ?? "-") in \(album.map { "\($0)" } ?? "-")" }

        init(title: String, code: String?, album: ObjectKey?) { (self.title, self.code, self.album) = (title, code, album) }

        init(_ track: ManagedObject) {
            if case .string(let title) = track["title"] { self.title = title } else { title = "" }
            if case .string(let code) = track["isrc"] { self.code = code }
            album = track["album"].referenceKey
        }

        static func < (left: TrackCopy, right: TrackCopy) -> Bool { left.description < right.description }
    }

    /// Runs `body` in a context that shows the newest committed state.
    private func committed<T: Sendable>(_ body: @escaping @Sendable (ManagedObjectContext) throws -> T) async throws -> T {
        try await container.coordinator.refresh()
        return try await container.coordinator.newBackgroundContext().perform { try body($0) }
    }

    /// Updates the first object of an entity, or all. The updated objects must have the value (S137).
    func batchUpdate(_ seed: UInt64) async throws -> String? {
        var generator = SeededGenerator(seed: seed)
        let (entity, property, destination) =
            [
                ("Artist", "profile", "Profile"), ("Profile", "artist", "Artist"), ("Artist", "mentor", "Artist"),
                ("Album", "artist", "Artist"), ("Track", "album", "Album"), ("Artist", "born", nil), ("Track", "isrc", nil),
            ].randomElement(using: &generator) ?? ("Artist", "born", nil)
        var value = Value.null
        if let destination {
            let keys = try await committed { try $0.objects(destination).map(\.objectID.key) }
            if generator.chance(70), let key = keys.randomElement(using: &generator) { value = .reference(key) }
        } else if property == "born" {
            value = .int(Int64(generator.below(9)))
        } else {
            value = Self.code(&generator)
        }
        // Several objects cannot share a unique value or a partner.
        let isShared = property == "isrc" || property == "profile" || entity == "Profile"
        let limit = isShared && !value.isNull || generator.chance(50) ? 1 : nil
        let request = EntityFetchRequest(entity, limit: limit)
        let result = try await container.coordinator.batchUpdate(request, set: [property: value])
        guard isAlone else { return nil }
        let ids = limit == nil ? [] : Set(result.updatedIDs)
        let wrong = try await committed { [value] context in
            try context.objects(entity).filter { limit == nil && $0[property] != value }.map(\.objectID.key)
        }
        if !wrong.isEmpty { return "a batch update of \(entity).\(property) to \(value) left out \(wrong)" }
        guard limit != nil, !ids.isEmpty else { return nil }
        let isSet = try await committed { [value] context in
            try ids.contains { try context.existingObject(with: $0)[property] == value }
        }
        return isSet ? nil : "a batch update of \(entity).\(property) did not set \(value)"
    }

    /// Imports tracks, some with known unique values, in saves of two rows. The tracks must be those that the rows give (S137).
    func importTracks(keeps: Bool, _ seed: UInt64) async throws -> String? {
        var generator = SeededGenerator(seed: seed)
        let (before, albums) = try await committed { context in
            (try context.objects("Track").map(TrackCopy.init), try context.objects("Album").map(\.objectID.key))
        }
        let copies = (0..<3).map { number -> TrackCopy in
            let code: String? = if case .string(let code) = Self.code(&generator) { code } else { nil }
            let album = generator.chance(60) ? albums.randomElement(using: &generator) : nil
            return TrackCopy(title: "import \(number)", code: code, album: album)
        }
        let rows: [[Value]] = copies.map { copy in
            [.string(copy.title), copy.code.map { .string($0) } ?? .null, .int(0), copy.album.map { .reference($0) } ?? .null]
        }
        var options = BatchOptions()
        options.rowsPerSave = 2
        do {
            try await container.coordinator.insert(
                into: "Track", ["title", "isrc", "plays", "album"], rows: rows,
                rule: keeps ? .keep(on: ["isrc"]) : .update(on: ["isrc"]), options: options)
        } catch BatchError.importStopped(_, let error as SaveError) where !isAlone {
            throw error
        }
        guard isAlone else { return nil }
        var expected = before
        for copy in copies {
            if let code = copy.code, let known = expected.firstIndex(where: { $0.code == code }) {
                if !keeps { expected[known] = copy }
            } else {
                expected.append(copy)
            }
        }
        let after = try await committed { try $0.objects("Track").map(TrackCopy.init) }
        return after.sorted() == expected.sorted() ? nil : "an import of \(copies) into \(before) left \(after)"
    }

    /// Shuffles the members of a relationship. Returns the owner, the relationship and the keys in their order.
    static func reorder(
        _ context: ManagedObjectContext, _ generator: inout SeededGenerator
    ) throws -> (owner: ObjectID, name: String, keys: [ObjectKey])? {
        let (entity, name) =
            [("Artist", "albums"), ("Album", "tracks"), ("Playlist", "tracks")].randomElement(using: &generator)
            ?? ("Album", "tracks")
        guard let owner = try any(entity, context, &generator) else { return nil }
        var members = owner.relatedObjects(name)
        if entity == "Playlist", generator.chance(50), let track = try any("Track", context, &generator),
            !members.contains(where: { $0 === track })
        {
            members.append(track)
        }
        members.shuffle(using: &generator)
        owner.setRelatedObjects(name, to: members)
        return (owner.objectID, name, members.map(\.objectID.key))
    }

    /// Shuffles members in a root without changes that reads the newest state, and saves. The order must be saved (S046).
    func saveOrder(_ root: BackgroundContext, _ seed: UInt64) async throws -> String? {
        let order = try await root.perform { context throws -> (owner: ObjectID, name: String, keys: [ObjectKey])? in
            var generator = SeededGenerator(seed: seed)
            context.refreshAllObjects()
            return context.hasChanges ? nil : try Self.reorder(context, &generator)
        }
        guard let order else { return nil }
        try await root.save()
        guard isAlone else { return nil }
        let saved = try await committed { context in
            let owner = try context.existingObject(with: order.owner)
            let keys = owner.relatedObjects(order.name).map(\.objectID.key)
            let isOrdered = context.model.entity(named: owner.entityName)?.relationship(named: order.name)?.isOrdered == true
            return isOrdered ? keys : order.keys.filter(Set(keys).contains)
        }
        return saved == order.keys ? nil : "\(order.name) of \(order.owner.key) are saved as \(saved), not as \(order.keys)"
    }
}
