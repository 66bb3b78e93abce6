internal import Platform

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A table that interns store UUIDs, so that an object id compares and hashes only two words.
enum StoreIdentityTable {
    private struct Table {
        var numbers: [UUID: UInt32] = [:]
        var uuids: [UUID] = []
    }

    private static let table = Mutex(Table())

    static func number(of uuid: UUID) -> UInt32 {
        table.withLock { table in
            if let known = table.numbers[uuid] { return known }
            let number = UInt32(table.uuids.count)
            table.uuids.append(uuid)
            table.numbers[uuid] = number
            return number
        }
    }

    static func uuid(of number: UInt32) -> UUID {
        table.withLock { $0.uuids[Int(number)] }
    }
}
