import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// Compares the keyed collections of two stores entry by entry.
struct CollectionComparison {
    private var old: Side
    private var new: Side

    /// The records of one store, of which some are read ahead.
    private struct Side {
        var records: StoredRecords
        let names: ObjectNames
        var next: Named?
        /// The store of the ids in the file.
        private let store: StoreIdentity
        /// The records that were read ahead, in their order.
        private var ahead: ArraySlice<Named> = []
        /// The record after those.
        private var following: Named?

        /// - Parameters:
        ///   - snapshot: The state.
        ///   - names: The names of the objects of the store.
        ///   - shared: The store that stands for this one in the ids that are keys, so that objects with equal keys have equal ids.
        init(_ snapshot: any StoreSnapshot, _ names: ObjectNames, idsOf shared: StoreIdentity) throws {
            records = try StoredRecords(snapshot)
            store = names.store
            self.names = ObjectNames(model: names.model, store: shared)
            try advance()
        }

        mutating func advance() throws {
            if ahead.isEmpty { try readAhead() }
            next = ahead.popFirst()
        }

        /// Reads the next record. If other ids in the keys of a collection change their order, reads all its entries.
        private mutating func readAhead() throws {
            guard let first = try following ?? read() else { return }
            following = nil
            ahead = [first]
            guard store != names.store, case .entry(let name, _) = first.record,
                let collection = records.collections[CollectionName(name)],
                CollectionText.hasIDs(collection)
            else { return }
            while following == nil, let another = try read() {
                if CollectionName(another.name) == CollectionName(name) { ahead.append(another) } else { following = another }
            }
            let entries = ahead.compactMap { if case .entry(_, let entry) = $0.record { entry } else { nil } }
            ahead = ArraySlice(
                entries.map { entry in
                    let key = TransferIDs.replace(in: entry.key, of: collection) { [store, names] id in
                        id.store == store ? ObjectID(store: names.store, entity: id.entity, key: id.key) : id
                    }
                    return StoredCollection.Entry(key: key, value: entry.value)
                }.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { (name, .entry(name, $0)) })
        }

        private mutating func read() throws -> Named? {
            try records.next().map { record in
                switch record {
                case .collection(let collection): (collection.name, record)
                case .entry(let name, _): (name, record)
                }
            }
        }
    }

    /// Creates a comparison of two states, with the names of the objects of each store.
    init(_ old: (state: any StoreSnapshot, names: ObjectNames), _ new: (state: any StoreSnapshot, names: ObjectNames)) throws {
        self.old = try Side(old.state, old.names, idsOf: old.names.store)
        self.new = try Side(new.state, new.names, idsOf: old.names.store)
    }

    /// Calls a closure with each difference. A collection without entries is one too.
    mutating func forEachDifference(_ body: (Difference) throws -> Void) throws {
        while old.next != nil || new.next != nil {
            let order = order(old.next, new.next)
            if order < 0, let only = old.next {
                try body(difference(.delete, of: only, in: old))
                try old.advance()
            } else if order > 0, let only = new.next {
                try body(difference(.insert, of: only, in: new))
                try new.advance()
            } else if let before = old.next, let after = new.next {
                if before.record != after.record { try body(update(before, after)) }
                try old.advance()
                try new.advance()
            }
        }
    }

    private typealias Named = (name: String, record: StoredCollection.Record)

    /// Compares the places of two records in the order of the stores: types first, then entries, by name and key. nil is the end.
    private func order(_ a: Named?, _ b: Named?) -> Int {
        guard let a, let b else { return a == nil ? 1 : -1 }
        func bytes(_ named: Named) -> [UInt8] {
            switch named.record {
            case .collection: [0] + Array(named.name.utf8)
            case .entry(let name, let entry): Array(name.utf8) + [0] + Array(entry.key)
            }
        }
        let (first, second) = (bytes(a), bytes(b))
        return first.lexicographicallyPrecedes(second) ? -1 : second.lexicographicallyPrecedes(first) ? 1 : 0
    }

    private func difference(_ kind: HistoryChange.Kind, of named: Named, in side: Side) -> Difference {
        switch named.record {
        case .collection(let found):
            let types = ComparedValue.types(found)
            let values = kind == .insert ? (ComparedValue.missing, types) : (types, .missing)
            return Difference(
                kind: kind, collection: named.name, key: nil, properties: [Difference.Property(name: "types", values: values)])
        case .entry(let name, let entry):
            let key = ComparedKey(entry.key, of: side.records.collections[CollectionName(name)], naming: side.names)
            return Difference(kind: kind, collection: name, key: key)
        }
    }

    private func update(_ before: Named, _ after: Named) -> Difference {
        let (first, second) = (
            old.records.collections[CollectionName(before.name)], new.records.collections[CollectionName(after.name)]
        )
        switch (before.record, after.record) {
        case (.entry(_, let one), .entry(_, let other)):
            let values = (ComparedValue.entry(one.value, first), ComparedValue.entry(other.value, second))
            let key = ComparedKey(one.key, of: first, naming: old.names)
            return Difference(
                kind: .update, collection: before.name, key: key, properties: [Difference.Property(name: "value", values: values)]
            )
        default:
            func types(_ found: StoredCollection?) -> ComparedValue { found.map { .types($0) } ?? .missing }
            return Difference(
                kind: .update, collection: before.name, key: nil,
                properties: [Difference.Property(name: "types", values: (types(first), types(second)))])
        }
    }
}
