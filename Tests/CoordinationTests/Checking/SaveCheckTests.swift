import StoreInterface
import StoreModel
import TestSupport
import Testing

@testable import ObjectGraph

/// The check of one save by merge policy, by its change, and by what other saves have made of the object (S100 to S106).
@Suite struct SaveCheckTests {
    enum Change: String, CaseIterable {
        case nothing, title, plays, both, deletion

        var columns: ColumnSet {
            var columns = ColumnSet()
            if self == .title || self == .both { columns.insert(SaveCheckTests.title) }
            if self == .plays || self == .both { columns.insert(SaveCheckTests.plays) }
            return columns
        }
    }

    /// The part of the track that a save writes.
    enum Outcome: Equatable {
        case conflict, nothing, deletion
        case update([ColumnIndex: Value])
        case insertion([ColumnIndex: Value])
    }

    private static let entity = Music.query("Track").entity
    private static let title = Music.column("Track", "title")
    private static let plays = Music.column("Track", "plays")
    private static let columns = Music.model.storeSchema.entities[entity].columnIndices

    private let store = FaultyStore(schema: Music.model.storeSchema)
    private let coordinator: PersistentStoreCoordinator
    private var writer: StoreWriter { coordinator.writer }

    init() throws {
        coordinator = try .music(store, SteppedClock())
    }

    // MARK: The expectation

    private static func values(_ columns: ColumnSet, _ title: Value, _ plays: Value) -> [ColumnIndex: Value] {
        var values: [ColumnIndex: Value] = [:]
        if columns.contains(Self.title) { values[Self.title] = title }
        if columns.contains(Self.plays) { values[Self.plays] = plays }
        return values
    }

    /// Returns the promised outcome of our change over theirs.
    private static func expected(_ ours: Change, _ theirs: Change, _ policy: PolicyKind, base: [ColumnIndex: Value]) -> Outcome {
        let mine = values(ours.columns, "ours", 10)
        if ours == .nothing { return .nothing }
        if theirs == .nothing { return ours == .deletion ? .deletion : .update(mine) }
        if ours == .deletion, theirs == .deletion { return .nothing }
        if policy == .error { return .conflict }
        if ours == .deletion { return policy.prefersStore ? .nothing : .deletion }
        let whole = base.merging(mine) { $1 }
        if theirs == .deletion { return policy.prefersStore ? .nothing : .insertion(whole) }
        switch policy {
        case .error, .rollback: return .nothing
        case .objectTrump: return .update(mine)
        case .overwrite: return .update(whole)
        case .storeTrump:
            let rest = mine.filter { !theirs.columns.contains($0.key) }
            return rest.isEmpty ? .nothing : .update(rest)
        }
    }

    // MARK: The check

    private static func layer(_ change: Change, _ key: ObjectKey) -> Layer {
        let layer = Layer(schema: Music.model.storeSchema)
        if change != .nothing {
            let kind: RowKind = change == .deletion ? .delete : .update
            let row = Row.make(kind: kind, layer: layer.id, columnCount: columns.count)
            for (column, value) in values(change.columns, "ours", 10) { row[column] = value }
            layer.put(row, entity: entity, key: key)
        }
        layer.seal()
        return layer
    }

    private static func outcome(_ layer: Layer, _ key: ObjectKey) -> Outcome {
        guard let row = layer.row(entity, key) else { return .nothing }
        var values: [ColumnIndex: Value] = [:]
        row.set.forEach { values[$0] = row[$0] }
        return switch row.kind {
        case .delete: .deletion
        case .update: .update(values)
        case .insert: .insertion(values)
        }
    }

    private func request(_ layer: Layer, base: StoreState, _ policy: MergePolicy) -> SaveRequest {
        SaveRequest(
            layers: [layer], base: base, policy: policy, durability: .durable, metadata: SaveMetadata(), preserved: [],
            rules: RelationshipRules(Music.model))
    }

    private func makeTrack(_ context: BackgroundContext) async throws -> ObjectID {
        try await context.perform(andSave: .durable) { context in
            let track = context.makeTrack("base", plays: 1)
            track["rating"] = .double(4)
            return track.objectID
        }
    }

    private func make(_ change: Change, _ id: ObjectID, _ context: BackgroundContext, _ durability: Durability) async throws {
        try await context.perform(andSave: durability) { context in
            let track = try context.existingObject(with: id)
            if change == .deletion { return context.delete(track) }
            for (column, value) in Self.values(change.columns, "theirs", 20) {
                track[column == Self.title ? "title" : "plays"] = value
            }
        }
    }

    private func base(of id: ObjectID, _ state: StoreState) throws -> [ColumnIndex: Value] {
        var values: [ColumnIndex: Value] = [:]
        for column in Self.columns { values[column] = try state.view.value(Self.entity, key: id.key, column: column) ?? .null }
        return values
    }

    @Test(arguments: PolicyKind.allCases, [Durability.durable, .deferred(within: .seconds(600))])
    func `S100, S101, S102, S103, S104, S105, S106: what is written follows from both changes and the policy`(
        _ policy: PolicyKind, _ durability: Durability
    ) async throws {
        let context = coordinator.newBackgroundContext()
        for theirs in Change.allCases {
            let id = try await makeTrack(context)
            let start = writer.state
            start.takeBase()
            let values = try base(of: id, start)
            if theirs != .nothing { try await make(theirs, id, context, durability) }
            for ours in Change.allCases {
                let comment: Comment = "ours \(ours), theirs \(theirs)"
                var check = SaveCheck(
                    request: request(Self.layer(ours, id.key), base: start, policy.mergePolicy), state: writer.state,
                    writer: writer)
                let expected = Self.expected(ours, theirs, policy, base: values)
                do {
                    let found = Self.outcome(try check.resolvedLayer(), id.key)
                    #expect(found == expected, comment)
                } catch SaveError.conflicts(let conflicts) {
                    #expect(expected == .conflict && conflicts.map(\.objectID) == [id], comment)
                    #expect(conflicts.first?.isDeletedHere == (ours == .deletion), comment)
                    #expect(conflicts.first?.isDeletedInStore == (theirs == .deletion), comment)
                }
            }
        }
    }

    /// Catches: a preview that lists only the conflicts which the policy leaves open.
    @Test(arguments: PolicyKind.allCases)
    func `S065: the check of a preview records every conflict, also if the policy resolves it`(_ policy: PolicyKind) async throws
    {
        let context = coordinator.newBackgroundContext()
        for theirs in Change.allCases {
            let id = try await makeTrack(context)
            let start = writer.state
            start.takeBase()
            if theirs != .nothing { try await make(theirs, id, context, .durable) }
            for ours in Change.allCases {
                var request = request(Self.layer(ours, id.key), base: start, policy.mergePolicy)
                request.isPreview = true
                var check = SaveCheck(request: request, state: writer.state, writer: writer)
                _ = try? check.resolvedLayer()
                let isInConflict = ours != .nothing && theirs != .nothing && !(ours == .deletion && theirs == .deletion)
                #expect(check.met.map(\.objectID) == (isInConflict ? [id] : []), "ours \(ours), theirs \(theirs)")
            }
        }
    }

    @Test(arguments: PolicyKind.allCases)
    func `S100: an unchanged object that a decision rests on is in conflict under the policy error only`(
        _ policy: PolicyKind
    ) async throws {
        let context = coordinator.newBackgroundContext()
        for theirs in Change.allCases {
            let id = try await makeTrack(context)
            let start = writer.state
            start.takeBase()
            if theirs != .nothing { try await make(theirs, id, context, .durable) }
            var request = request(Self.layer(.nothing, id.key), base: start, policy.mergePolicy)
            request.checks.watched = [id]
            var check = SaveCheck(request: request, state: writer.state, writer: writer)
            if policy == .error, theirs != .nothing {
                #expect(throws: SaveError.self, "\(theirs)") { try check.resolvedLayer() }
            } else {
                #expect(try check.resolvedLayer().isEmpty, "\(theirs)")
            }
        }
    }

    @Test(arguments: PolicyKind.allCases)
    func `S108: a new object with a unique value of the store is settled by the policy`(_ policy: PolicyKind) async throws {
        let context = coordinator.newBackgroundContext()
        let isrc = Music.column("Track", "isrc")
        let start = writer.state
        let id = try await context.perform(andSave: .durable) { context in
            let track = context.makeTrack("base", plays: 1)
            track["isrc"] = "same"
            return track.objectID
        }
        let layer = Layer(schema: Music.model.storeSchema)
        let row = Row.make(kind: .insert, layer: layer.id, columnCount: Self.columns.count)
        row.fill(with: try #require(Music.model.entity(named: "Track")).defaults)
        (row[Self.title], row[isrc]) = ("ours", "same")
        layer.put(row, entity: Self.entity, key: ObjectKey(1 << 40))
        layer.seal()
        var check = SaveCheck(request: request(layer, base: start, policy.mergePolicy), state: writer.state, writer: writer)
        if policy == .error {
            let error = #expect(throws: SaveError.self) { try check.resolvedLayer() }
            #expect(error?.code == .uniqueConstraint)
            return
        }
        let resolved = try check.resolvedLayer()
        #expect(resolved.row(Self.entity, ObjectKey(1 << 40)) == nil)
        #expect(resolved.row(Self.entity, id.key)?[Self.title] == (policy.prefersStore ? nil : "ours"))
        #expect(check.isChanged)
    }

    /// Catches: a check that changes the layers of the request, which the context goes on reading.
    @Test(arguments: PolicyKind.allCases)
    func `S062: a check leaves the layers of the request as they were`(_ policy: PolicyKind) async throws {
        let context = coordinator.newBackgroundContext()
        for theirs in Change.allCases {
            for ours in Change.allCases {
                let id = try await makeTrack(context)
                let start = writer.state
                start.takeBase()
                if theirs != .nothing { try await make(theirs, id, context, .durable) }
                let layer = Self.layer(ours, id.key)
                let before = Self.outcome(layer, id.key)
                var check = SaveCheck(
                    request: request(layer, base: start, policy.mergePolicy), state: writer.state, writer: writer)
                let resolved = try? check.resolvedLayer()
                #expect(Self.outcome(layer, id.key) == before, "ours \(ours), theirs \(theirs)")
                #expect(check.isChanged || resolved == nil || resolved === layer)
            }
        }
    }
}
