import LMDB
import PageCodec
internal import Platform
import StoreInterface
import StoreModel

/// The dictionaries of packed pages. The table `dictionaries` has them by entity and number. Dictionaries already used are
/// kept ready.
///
/// A written dictionary never changes, so a loaded dictionary is right in every snapshot.
final class Dictionaries: Sendable {
    private let table: Database
    private let known = Mutex<[UInt64: PageDictionary]>([:])

    /// The entities' numbers in the file.
    private let entityNumbers: [Int]

    init(_ tables: Tables) {
        table = tables.dictionaries
        entityNumbers = tables.entityNumbers
    }

    func key(_ entity: EntityIndex, _ number: UInt32) -> UInt64 { UInt64(entityNumbers[entity]) << 32 | UInt64(number) }

    /// Removes the loaded dictionaries, so that they are read from the file and checked again.
    func forget() { known.withLock { $0 = [:] } }

    /// Returns a dictionary, or nil for number 0, which means no dictionary.
    /// - Throws: `PageError` if there is no dictionary with that number, or if it is damaged.
    func dictionary(_ entity: EntityIndex, _ number: UInt32, in reader: some ByteReading) throws -> PageDictionary? {
        if number == 0 { return nil }
        let key = self.key(entity, number)
        if let dictionary = known.withLock({ $0[key] }) { return dictionary }
        guard let bytes = try reader.get(table, key) else {
            throw PageError(field: "dictionary number", reason: "\(number) is of no dictionary")
        }
        let made = try DictionaryRecord(bytes).dictionary()
        known.withLock { $0[key] = made }
        return made
    }

    /// Returns the number and the record of an entity's newest dictionary.
    func newest(_ entity: EntityIndex, in transaction: ReadTransaction) throws -> (number: UInt32, record: DictionaryRecord)? {
        try transaction.withCursor(table) { cursor in
            let end = key(entity, .max)
            let beyond = try cursor.seek(end)
            guard let entry = try beyond == nil ? cursor.move(.last) : cursor.move(.previous),
                entry.number >= key(entity, 1),
                entry.number <= end
            else { return nil }
            return (UInt32(truncatingIfNeeded: entry.number), try DictionaryRecord(entry.value))
        }
    }

    /// Deletes up to a number of dictionaries of an entity with a number in the file. Returns whether none is left.
    func removeSome(ofEntity number: Int, _ limit: Int, in transaction: WriteTransaction) throws -> Bool {
        guard let number = UInt32(exactly: number) else { return true }
        let first = UInt64(number) << 32
        return try transaction.removeSome(limit, of: first...(first | UInt64(UInt32.max)), in: table)
    }

    /// Writes a dictionary under the next number of its entity.
    func add(_ record: [UInt8], _ entity: EntityIndex, in transaction: WriteTransaction) throws -> UInt32 {
        var number: UInt32 = 1
        while try transaction.get(table, key(entity, number)) != nil { number += 1 }
        try record.withUnsafeBytes { try transaction.put(table, key: key(entity, number), value: $0) }
        return number
    }
}

extension WriteTransaction {
    /// Deletes up to a number of keys of a range. Returns whether none is left.
    func removeSome(_ limit: Int, of keys: ClosedRange<UInt64>, in database: Database) throws -> Bool {
        try withCursor(database) { cursor in
            for _ in 0..<limit {
                guard let entry = try cursor.seek(keys.lowerBound), keys.contains(entry.number) else { return true }
                try cursor.deleteKey()
            }
            return false
        }
    }
}
