import Foundation
import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel

/// Tells open pages about saves of all processes, and remembers the values that the saves changed.
///
/// The history stores which properties a save changed, but not their values. So the feed keeps the newest state, and compares it with the
/// next one.
actor LiveFeed {
    /// The greatest number of pages that are told about saves.
    private static let maximumListeners = 16
    /// The greatest number of saves whose values are remembered, and of objects per step.
    private static let (rememberedSaves, comparedObjects) = (200, 200)
    private static let batch = 500

    private struct SaveEvent: Encodable {
        var save: Generation
        var entities: [String] = []
    }

    private let store: StudioStore
    private var listeners: [Int: AsyncStream<String>.Continuation] = [:]
    private var nextListener = 0
    private var newest: Snapshot?
    private var known: HistoryToken?
    private var differences: [Generation: [ObjectID: ObjectDifference]] = [:]
    private var lastStep: Task<Void, Never>?
    /// The reason why saves of other processes are noticed late; nil if they are noticed at once.
    private(set) var failure: String?

    init(_ store: StudioStore) { self.store = store }

    /// Follows saves until the task is cancelled.
    ///
    /// - Parameter tick: A closure called now and then.
    func run(_ tick: @escaping @Sendable () -> Void) async {
        // Begin to watch before the first state is taken, so that no save is missed between the two.
        let changes = store.coordinator.remoteChanges
        do { try store.coordinator.followOtherProcesses() } catch {
            failure = "saves of other processes are noticed after some seconds: \(store.language.sentence(error))"
        }
        await catchUp()
        let interval = min(.seconds(15), store.options.idleTime / 4)
        await withTaskGroup { group in
            group.addTask { for await _ in changes { await self.catchUp() } }
            group.addTask {
                while (try? await Task.sleep(for: interval)) != nil {
                    tick()
                    await self.catchUp()
                    await self.send(": still here\n\n")
                }
            }
        }
    }

    func close() {
        for listener in listeners.values { listener.finish() }
        listeners = [:]
        newest = nil
    }

    /// The values that a save has changed, as far as they are known.
    func differences(ofSave save: Generation) -> [ObjectID: ObjectDifference] { differences[save] ?? [:] }

    // MARK: Listeners

    /// Returns an answer that never ends, with one event per save.
    func response() throws -> StudioResponse {
        guard listeners.count < Self.maximumListeners else {
            throw PageError(.serviceUnavailable, "too many pages are open. Close one")
        }
        let (events, continuation) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingNewest(64))
        let number = nextListener
        nextListener += 1
        listeners[number] = continuation
        continuation.onTermination = { _ in Task { await self.remove(number) } }
        // The page compares the number with that of its state, because it may have missed saves.
        continuation.yield(Self.text(SaveEvent(save: newest?.generation ?? 0)))
        return StudioResponse(.ok, type: "text/event-stream", body: .events(events, onClose: { continuation.finish() }))
    }

    private func remove(_ number: Int) { listeners[number] = nil }

    private func send(_ text: String) {
        for listener in listeners.values { listener.yield(text) }
    }

    private static func text(_ event: SaveEvent) -> String {
        let data = (try? JSONEncoder().encode(event)) ?? Data()
        return "event: save\ndata: \(String(decoding: data, as: UTF8.self))\n\n"
    }

    // MARK: Saves

    /// Reads the saves since the last call. Returns when they are known.
    func catchUp() async {
        let last = lastStep
        // One step at a time, in the order of the calls.
        let step = Task {
            await last?.value
            await self.step()
        }
        lastStep = step
        await step.value
    }

    private func step() async {
        let coordinator = store.coordinator
        guard let after = try? coordinator.snapshot(owner: "studio: newest state") else { return }
        let token = coordinator.currentHistoryToken
        let position = HistoryToken(store: token.store, incarnation: token.incarnation, generation: after.generation)
        guard let before = newest, let known else {
            (newest, self.known) = (after, position)
            return
        }
        guard after.generation != before.generation else { return }
        newest = after
        self.known = position
        let request = HistoryRequest(after: known, limit: Self.batch)
        let saves = (try? await coordinator.history(request))?.filter { $0.id <= after.generation } ?? []
        // If there are more saves than were read, the newest values may come from those.
        let found =
            saves.count < Self.batch
            ? await Comparison(store: store, limit: Self.comparedObjects).differences(of: saves, before, after) : [:]
        differences.merge(found) { $1 }
        for save in differences.keys.sorted().dropLast(Self.rememberedSaves) { differences[save] = nil }
        let names = saves.count == Self.batch || saves.isEmpty ? self.names.map(\.name) : entities(of: saves)
        send(Self.text(SaveEvent(save: after.generation, entities: names)))
    }

    /// The entities that pages show.
    private var names: [Entity] { store.model.entities + store.model.subentities }

    private func entities(of saves: [HistoryTransaction]) -> [String] {
        var numbers: Set<EntityIndex> = []
        let schema = store.model.storeSchema
        for save in saves {
            numbers.formUnion(save.changeSet.entities.map(\.entity))
            for change in save.changeSet.links where schema.linkIndices.contains(change.link) {
                let link = schema.links[change.link]
                numbers.formUnion([link.source, link.destination])
            }
        }
        return names.filter { numbers.contains($0.number) }.map(\.name)
    }
}

/// The values of an object before and after a save.
struct ObjectDifference: Encodable, Sendable {
    struct Property: Encodable, Sendable {
        var name: String
        var before: Cell
        var after: Cell
    }

    var properties: [Property]
    /// Whether the values differ by several saves, which were found at once.
    var isOfSeveralSaves = false
}

/// Compares the objects that saves have changed between two states.
private struct Comparison: Sendable {
    let store: StudioStore
    let limit: Int

    func differences(
        of saves: [HistoryTransaction], _ before: Snapshot, _ after: Snapshot
    ) async -> [Generation: [ObjectID: ObjectDifference]] {
        var changes: [ObjectID: (save: Generation, kind: HistoryChange.Kind, properties: Set<String>, count: Int)] = [:]
        for save in saves {
            for change in save.changes {
                let known = changes[change.objectID]
                // A known object has the value of this save, wherever the save lists it.
                guard known != nil || changes.count < limit else { continue }
                let properties = change.updatedProperties.union(known?.properties ?? [])
                changes[change.objectID] = (save.id, change.kind, properties, (known?.count ?? 0) + 1)
            }
        }
        var found: [Generation: [ObjectID: ObjectDifference]] = [:]
        for (number, ids) in Dictionary(grouping: changes.keys, by: \.entity) {
            guard store.entity(numbered: number) != nil, let old = try? await states(of: ids, numbered: number, in: before),
                let new = try? await states(of: ids, numbered: number, in: after)
            else {
                continue
            }
            for id in ids {
                guard let change = changes[id] else { continue }
                found[change.save, default: [:]][id] = ObjectDifference(
                    properties: properties(from: old[id.key], to: new[id.key]), isOfSeveralSaves: change.count > 1)
            }
        }
        return found
    }

    /// The entity of an object, and the values of its columns.
    private struct ObjectState: Sendable {
        var entity: Entity
        var values: [Value]
    }

    /// Returns the properties with different values. An object has no values before it is inserted, nor after it is deleted.
    private func properties(from old: ObjectState?, to new: ObjectState?) -> [ObjectDifference.Property] {
        guard let entity = (new ?? old)?.entity else { return [] }
        // The key of a deleted object may have been given to an object of another entity of the hierarchy.
        let before = old?.entity === entity ? old?.values : nil
        return store.columns(of: entity).enumerated().compactMap { column, schema -> ObjectDifference.Property? in
            let (one, other) = (before?[column] ?? .null, new?.values[column] ?? .null)
            guard one.order(other) != 0 else { return nil }
            return ObjectDifference.Property(
                name: schema.name, before: store.cell(one, schema.type, limit: 200),
                after: store.cell(other, schema.type, limit: 200))
        }
    }

    /// Returns objects of one hierarchy with the columns of their own entities, which may have more than the head.
    private func states(
        of ids: [ObjectID], numbered number: EntityIndex, in snapshot: Snapshot
    ) async throws -> [ObjectKey: ObjectState] {
        try await store.read(snapshot) { context in
            var found: [ObjectKey: ObjectState] = [:]
            for entity in store.hierarchy(of: number) {
                let columns = store.columns(of: entity).map { ResultColumn.property($0.name) }
                let request = EntityValueRequest(
                    entity.name, fetching: [ResultColumn.objectID.named("$key")] + columns, matching: .ids(ids))
                for row in try context.fetch(request) {
                    let (key, values) = (row.values[0].referenceKey ?? 0, Array(row.values.dropFirst()))
                    // The request of each entity that the object's entity inherits from returns it too, with fewer columns.
                    guard values.count >= found[key]?.values.count ?? 0 else { continue }
                    found[key] = ObjectState(entity: entity, values: values)
                }
            }
            return found
        }
    }
}
