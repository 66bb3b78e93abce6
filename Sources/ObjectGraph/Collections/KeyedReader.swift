import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Reads the entries of a range of keys as bytes, some at a time.
///
/// While no layer changes keyed values, the keys come from the store's index and only the values are read from pages. The reader finds out
/// at each entry whether that is still the state of the context, because its caller may change the collection in between.
@usableFromInline
struct KeyedReader {
    private let context: ManagedObjectContext
    private let direction: StoreSort.Direction
    private var lower: [UInt8]
    private var upper: [UInt8]
    /// The maximum number of entries that are still to be read.
    private var limit: Int
    private var batch = Batch()
    private var batchSize: Int
    private var isAtEnd = false

    /// An entry.
    @usableFromInline
    struct Entry {
        @usableFromInline var key: ArraySlice<UInt8>
        @usableFromInline var value: Data
    }

    /// Some objects in the order of their keys.
    private struct Batch {
        var objects: [ObjectKey] = []
        /// The position of the next object.
        var next = 0
        /// The keys of the objects as the store's index has them; nil if layers change keyed values.
        var keys: OrderedData?
        /// The keys of the objects if ``keys`` is nil.
        var names: [Data] = []
        /// The view in which ``keys`` were read.
        var viewRevision: UInt64 = 0
    }

    init(
        _ context: ManagedObjectContext, from lower: [UInt8], to upper: [UInt8], direction: StoreSort.Direction,
        limit: Int? = nil, batchSize: Int = 64
    ) {
        self.context = context
        self.lower = lower
        self.upper = upper
        self.direction = direction
        self.limit = limit ?? .max
        self.batchSize = batchSize
    }

    /// Returns the next entry as the context shows it now, or nil at the end. Leaves out entries that were removed meanwhile.
    @usableFromInline
    mutating func next() throws -> Entry? {
        while true {
            if batch.next == batch.objects.count, try !readBatch() { return nil }
            let position = batch.next
            batch.next += 1
            if let entry = try entry(position) { return entry }
        }
    }

    /// Returns the next key, or nil at the end. Reads no value.
    @usableFromInline
    mutating func nextKey() throws -> ArraySlice<UInt8>? {
        if batch.next == batch.objects.count, try !readBatch() { return nil }
        defer { batch.next += 1 }
        return key(batch.next)
    }

    private func entry(_ position: Int) throws -> Entry? {
        let object = batch.objects[position]
        // This may move the context to a newer state.
        context.checkIsolation()
        if let keys = batch.keys, batch.viewRevision == context.layerStack.viewRevision, context.readsKeyedValuesFromStore {
            guard let value = try context.using({ try context.storedKeyedValue(object) }) else { return nil }
            return Entry(key: keys.data(at: position), value: value)
        }
        if let found = try context.keyedEntry(object) { return Entry(key: ArraySlice(found.key), value: found.value) }
        // A merge may have given the key to another object meanwhile (S192).
        let name = Data(key(position))
        guard let other = try context.using({ try context.keyedObject(name) }) else { return nil }
        return try context.keyedEntry(other).map { Entry(key: ArraySlice($0.key), value: $0.value) }
    }

    private func key(_ position: Int) -> ArraySlice<UInt8> {
        batch.keys?.data(at: position) ?? ArraySlice(batch.names[position])
    }

    /// Reads the next objects. Returns false if there are none.
    private mutating func readBatch() throws -> Bool {
        let wanted = min(batchSize, limit)
        guard !isAtEnd, wanted > 0 else { return false }
        let limit = wanted == .max ? nil : wanted
        context.checkIsolation()
        if context.readsKeyedValuesFromStore {
            let keys = try context.storedKeys(from: lower, to: upper, direction: direction, limit: limit)
            batch = Batch(objects: keys.keys, keys: keys, viewRevision: context.layerStack.viewRevision)
        } else {
            let objects = try context.keyedObjects(from: lower, to: upper, direction: direction, limit: limit)
            batch = Batch(objects: objects, names: try objects.map { try context.keyedKey($0) })
        }
        let count = batch.objects.count
        isAtEnd = count < wanted
        self.limit -= count
        if batchSize < 16384 { batchSize *= 4 }
        guard count > 0 else { return false }
        let last = key(count - 1)
        if direction == .ascending { lower = Array(last) + [0] } else { upper = Array(last) }
        return true
    }
}
