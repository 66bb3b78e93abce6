import ObjectGraph
import StoreInterface
import StoreModel

/// One object on its way from one store or file to another. Objects are named by ids that are unique in their entity. References contain
/// such ids.
struct TransferObject: Sendable {
    /// The objects of one link that this object is the source of.
    struct Links: Sendable {
        var link: LinkIndex
        var destinations: [UInt64]
    }

    var entity: EntityIndex
    var id: UInt64
    /// One value per column of the entity.
    var values: [Value]
    var links: [Links] = []

    /// The number of bytes of the object's texts and data, which alone can be large.
    var byteCount: Int {
        values.reduce(0) { sum, value in
            switch value {
            case .string(let text): sum + text.utf8.count
            case .data(let data): sum + data.count
            default: sum
            }
        }
    }
}

/// Data that objects are read from, one by one: a store, a file of JSON lines, a folder of CSV files, or a data set.
protocol ObjectSource: AnyObject {
    /// The model of the objects, whose entities, columns and links they use.
    var model: Model { get }
    /// The number of objects, if it is known.
    var objectCount: Int? { get }
    /// The data that the source has left out or changed, one line each. Complete at the end.
    var notes: [String] { get }
    /// The number of references to objects that do not exist, which the source has left out.
    var lostReferences: Int { get }
    /// The file and the line of the object that was returned last, for errors; nil if the source has no lines.
    var place: String? { get }
    /// Returns the next object, or nil at the end.
    func next() throws -> TransferObject?
    /// Whether there are keyed collections.
    var hasCollections: Bool { get }
    /// Returns the next record of the keyed collections, or nil at the end. The types of a collection come before its entries. To be
    /// called after the last object.
    func nextRecord() throws -> StoredCollection.Record?
}

extension ObjectSource {
    var hasCollections: Bool { false }
    func nextRecord() throws -> StoredCollection.Record? { nil }
}

extension ObjectSource {
    var lostReferences: Int { 0 }
    var place: String? { nil }
}

/// The result of a transfer.
struct TransferSummary: Sendable {
    /// The number of objects of each entity.
    var objects: [Int]
    /// The number of related pairs of links.
    var pairs = 0

    /// The number of entries of each keyed collection, by name.
    var entries: [CollectionName: Int] = [:]
    /// The number of entries of keyed collections with an id of no object of the new store, by the name of the collection.
    var keptIDs: [CollectionName: Int] = [:]
    /// The damage of the input that is in no data that was read, one line each.
    var damage: [String] = []

    /// The data that needs attention, one line each.
    var notes: [String] {
        damage.map { "damaged, but not needed or found again: \($0)" }
            + keptIDs.sorted { $0.key < $1.key }.map { name, count in
                "\(name.text): the keys of \(count) entries are ids of objects that are not in the input. They were kept as they are"
            }
    }

    var objectCount: Int { objects.reduce(0, +) }

    mutating func count(_ record: StoredCollection.Record) {
        switch record {
        case .collection(let collection): entries[CollectionName(collection.name), default: 0] += 0
        case .entry(let name, _): entries[CollectionName(name), default: 0] += 1
        }
    }

    /// Returns the number of objects of each entity that programs see. The objects of hidden entities have the positions of pairs in ordered
    /// relationships.
    func counts(in model: Model) -> [(name: String, count: Int)] {
        zip(model.storeSchema.entities, objects).filter { !$0.0.isOrder }.map { ($0.name, $1) }
    }
}

extension EntitySchema {
    /// The types that objects can have: those of the entities that are not abstract. Without subentities, an object has the type zero.
    /// O(entities).
    var typesOfObjects: Set<Int64> {
        let inheriting = subentities.filter { !$0.isAbstract }.map(\.type)
        return Set(isAbstract ? inheriting : inheriting + [0])
    }

    /// The name of the column of the types of objects, for errors.
    var typeName: String { typeColumn.map { columns[$0].name } ?? "" }
}
