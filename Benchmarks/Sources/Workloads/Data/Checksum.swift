import Datasets
import ObjectGraph
import StoreInterface

/// A checksum of many values in any order. It compares the values of a file with the expected values.
///
/// Each value counts with its row and its column, so exchanged values are detected too.
struct Checksum: Hashable, Sendable {
    private(set) var values = 0
    private(set) var sum: UInt64 = 0

    /// Adds a value. Rows and columns count from 0. Values that engines store in the same form count alike: a flag is a number,
    /// and a UUID is its text.
    mutating func add(_ row: Int, column: Int, value: Value) {
        values += 1
        let place = Self.mixed(UInt64(truncatingIfNeeded: row) &* 64 &+ UInt64(column))
        sum &+= Self.mixed(place ^ Self.bits(value))
    }

    private static func bits(_ value: Value) -> UInt64 {
        switch value {
        case .null: 0x9E37_79B9_7F4A_7C15
        case .bool(let flag): flag ? 1 : 0
        case .int(let number): UInt64(bitPattern: number)
        case .uint(let number): number
        // SQLite stores minus zero as zero.
        case .double(let number): number == 0 ? 0 : number.bitPattern
        case .reference(let key): key.rawValue
        case .string(let text): bits(text.utf8)
        case .data(let data): bits(data)
        case .uuid(let uuid): bits(uuid.uuidString.utf8)
        }
    }

    /// FNV-1a.
    private static func bits(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// The finalizer of SplitMix64.
    private static func mixed(_ number: UInt64) -> UInt64 {
        var z = number &+ 0x9E37_79B9_7F4A_7C15
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// Throws ``VerificationError`` unless the checksum is equal to `expected`.
    func check(_ what: String, _ expected: Checksum) throws {
        guard values == expected.values else {
            throw VerificationError("\(what): \(values) values in the file, expected \(expected.values)")
        }
        guard sum == expected.sum else {
            throw VerificationError(
                "\(what): other values in the file than were written; their checksum is \(sum), expected \(expected.sum)")
        }
    }
}

extension Checksum {
    /// Creates the checksum of all values of a table: attributes, then references. A reference is null, or a row's number plus
    /// one.
    init(_ table: Table) {
        for (column, attribute) in table.attributes.enumerated() {
            for (row, value) in attribute.values.enumerated() { add(row, column: column, value: value) }
        }
        for (number, reference) in table.references.enumerated() {
            for (row, far) in reference.rows.enumerated() {
                add(row, column: table.attributes.count + number, value: far < 0 ? .null : .int(Int64(far) + 1))
            }
        }
    }

    /// Creates the checksum of all pairs of a link, from the source.
    init(_ link: Link) {
        for pair in link.pairs { add(Int(pair.source), column: 0, value: .int(Int64(pair.destination))) }
    }

    /// Returns the checksum of all stored records, by one scan. A record whose id is unknown counts as row -1 and changes the sum.
    static func records(_ container: PersistentContainer, _ entity: Entity, ids: RowIDs) async throws -> Checksum {
        try await container.newBackgroundContext(name: "check").perform { context throws in
            var sum = Checksum()
            let attributes = entity.attributes
            var all = EntityFetchRequest(RecordData.entity)
            // The store in memory searches again for each batch.
            all.fetchBatchSize = 32_768
            try context.forEachBatch(of: all) { objects in
                for object in objects {
                    let row = ids.row(of: object.objectID) ?? -1
                    for (column, attribute) in attributes.enumerated() {
                        sum.add(row, column: column, value: object[attribute: attribute])
                    }
                }
            }
            return sum
        }
    }
}
